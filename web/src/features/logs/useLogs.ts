/** The lines of a run as far as they are loaded: the end or a place first, what lies around it on request, new ones as they come. */

import { useCallback, useEffect, useRef, useState } from 'react'
import { get, seg } from '@/api/client'
import { useChange } from '@/api/news'
import type { LogLine, LogPage } from '@/api/types'
import { joined } from '@/lib/logs'

export interface LogFilter {
  level: string
  rank: string
  grep: string
  attempt: string
}

export interface Logs {
  lines: LogLine[]
  /** The first line of the record is among them. */
  complete: boolean
  /** Which part of the record they are: its end, its beginning, or around a line. */
  part: 'end' | 'start' | 'place'
  loading: boolean
  error: unknown
  earlier: () => void
  /** Loads what follows the last line, where that is on the record and not loaded. */
  later: () => void
  /** Loads from the first line that is an error; gives its id, or '' when there is none. */
  firstError: () => Promise<string>
  toEnd: () => void
  toStart: () => void
  /** Loads what stands around a line; false when it is not on the record, or filtered out. */
  around: (id: string) => Promise<boolean>
}

const FIRST = 2000
const PAGE = 2000
const AROUND = 200 // lines in front of an error that was jumped to
const POLL_MS = 2000

/** `place` is the line that is shown first; without one the end is. */
export function useLogs(run: string, filter: LogFilter, live: boolean, place = ''): Logs {
  const [lines, setLines] = useState<LogLine[]>([])
  const [complete, setComplete] = useState(false)
  const [part, setPart] = useState<Logs['part']>('end')
  const [loading, setLoading] = useState(true)
  const [error, setError] = useState<unknown>(null)
  const next = useRef('')
  const previous = useRef('')
  const rest = useRef(false) // lines behind the last one are on the record and not asked for
  const turn = useRef(0)
  const busy = useRef(false)
  const { level, rank, grep, attempt } = filter

  const page = useCallback(
    (more: Record<string, string | number>) =>
      get<LogPage>(`/runs/${seg(run)}/logs`, { level, rank, grep, attempt, ...more }),
    [run, level, rank, grep, attempt],
  )

  const loadTail = useCallback(async () => {
    const mine = ++turn.current
    setLoading(true)
    try {
      const found = await page({ tail: FIRST })
      if (mine !== turn.current) return
      next.current = found.next ?? ''
      previous.current = found.previous ?? ''
      rest.current = false
      setLines(found.lines)
      setPart('end')
      setComplete(!found.previous)
      setError(null)
    } catch (failure) {
      if (mine === turn.current) setError(failure)
    } finally {
      if (mine === turn.current) setLoading(false)
    }
  }, [page])

  const show = useCallback((found: LogPage, front: LogPage | null) => {
    turn.current += 1
    next.current = found.next ?? ''
    previous.current = front?.previous ?? ''
    rest.current = Boolean(found.more)
    setLines(joined(front?.lines ?? [], found.lines))
    setPart(front ? 'place' : 'start')
    setComplete(!front?.previous)
    setError(null)
    setLoading(false)
  }, [])

  const around = useCallback(
    async (id: string) => {
      const front = await page({ before: id, limit: AROUND })
      const found = await page({ after: front.lines.at(-1)?.id ?? '', limit: PAGE })
      if (!found.lines.some((line) => line.id === id)) return false
      show(found, front)
      return true
    },
    [page, show],
  )

  const toStart = useCallback(async () => {
    setLoading(true)
    try {
      show(await page({ after: '', limit: PAGE }), null)
    } catch (failure) {
      setError(failure)
      setLoading(false)
    }
  }, [page, show])

  const first = useRef(place)
  useEffect(() => {
    const id = first.current
    first.current = ''
    if (!id) return void loadTail()
    void around(id).then(
      (there) => !there && void loadTail(),
      () => void loadTail(),
    )
  }, [loadTail, around])

  const follow = useCallback(
    async (mine: number) => {
      const found = await page({ after: next.current, limit: PAGE })
      if (mine !== turn.current) return false
      next.current = found.next || next.current
      rest.current = Boolean(found.more)
      if (found.lines.length) setLines((was) => joined(was, found.lines))
      return rest.current && found.lines.length > 0
    },
    [page],
  )

  const poll = useCallback(async () => {
    if (busy.current || rest.current || !next.current) return
    busy.current = true
    const mine = turn.current
    try {
      while (await follow(mine));
    } catch {
      // the next round asks again
    } finally {
      busy.current = false
    }
  }, [follow])

  const later = useCallback(async () => {
    if (busy.current || !rest.current) return
    busy.current = true
    try {
      await follow(turn.current)
    } catch (failure) {
      setError(failure)
    } finally {
      busy.current = false
    }
  }, [follow])

  useEffect(() => {
    if (!live) return
    const timer = setInterval(() => !document.hidden && void poll(), POLL_MS)
    return () => clearInterval(timer)
  }, [live, poll])
  useChange(useCallback((change) => change.topic === `run:${run}` && Boolean(change.lines) && void poll(), [run, poll]))

  const earlier = useCallback(async () => {
    if (!previous.current) return
    const mine = turn.current
    setLoading(true)
    try {
      const found = await page({ before: previous.current, limit: PAGE })
      if (mine !== turn.current) return
      previous.current = found.previous ?? ''
      setLines((was) => joined(found.lines, was))
      setComplete(!found.previous)
      setError(null)
    } catch (failure) {
      if (mine === turn.current) setError(failure)
    } finally {
      if (mine === turn.current) setLoading(false)
    }
  }, [page])

  const firstError = useCallback(async () => {
    const held = complete ? lines.find((line) => line.level === 'error') : undefined
    if (held) return held.id
    const found = await get<LogPage>(`/runs/${seg(run)}/logs`, { level: 'error', rank, attempt, limit: 1 })
    const line = found.lines[0]
    if (!line) return ''
    if (lines.some((one) => one.id === line.id)) return line.id
    await around(line.id)
    return line.id
  }, [complete, lines, run, rank, attempt, around])

  return {
    lines,
    part,
    complete,
    loading,
    error,
    earlier: () => void earlier(),
    later: () => void later(),
    firstError,
    toEnd: () => void loadTail(),
    toStart: () => void toStart(),
    around,
  }
}

/** All lines of the record as one text, page by page. */
export async function allText(run: string, attempt: string): Promise<string[]> {
  const parts: string[] = []
  let after = ''
  for (;;) {
    const found: LogPage = await get<LogPage>(`/runs/${seg(run)}/logs`, { attempt, after, limit: 5000 })
    parts.push(
      ...found.lines.map((line) => `${new Date(line.time_us / 1000).toISOString()} [${line.rank}] ${line.text}\n`),
    )
    if (!found.more || !found.next || found.next === after) return parts
    after = found.next
  }
}
