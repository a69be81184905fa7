/** The lines of a run as far as they are loaded: the end first, earlier ones on request, new ones as they come. */

import { useCallback, useEffect, useRef, useState } from 'react'
import { get, seg } from '@/api/client'
import { useChange } from '@/api/news'
import type { LogLine, LogPage } from '@/api/types'

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
  loading: boolean
  error: unknown
  earlier: () => void
  /** Loads from the first line that is an error; gives its id, or '' when there is none. */
  firstError: () => Promise<string>
  toEnd: () => void
}

const FIRST = 2000
const PAGE = 2000
const POLL_MS = 2000

export function useLogs(run: string, filter: LogFilter, live: boolean): Logs {
  const [lines, setLines] = useState<LogLine[]>([])
  const [complete, setComplete] = useState(false)
  const [loading, setLoading] = useState(true)
  const [error, setError] = useState<unknown>(null)
  const tail = useRef(FIRST)
  const next = useRef('')
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
      const found = await page({ tail: tail.current })
      if (mine !== turn.current) return
      next.current = found.next ?? ''
      setLines(found.lines)
      setComplete(found.lines.length < tail.current)
      setError(null)
    } catch (failure) {
      if (mine === turn.current) setError(failure)
    } finally {
      if (mine === turn.current) setLoading(false)
    }
  }, [page])

  useEffect(() => {
    tail.current = FIRST
    void loadTail()
  }, [loadTail])

  const poll = useCallback(async () => {
    if (busy.current || !next.current) return
    busy.current = true
    const mine = turn.current
    try {
      for (let more = true; more && mine === turn.current; ) {
        const found = await page({ after: next.current, limit: PAGE })
        if (mine !== turn.current) return
        next.current = found.next || next.current
        if (found.lines.length) setLines((was) => [...was, ...found.lines])
        more = Boolean(found.more) && found.lines.length > 0
      }
    } catch {
      // the next round asks again
    } finally {
      busy.current = false
    }
  }, [page])

  useEffect(() => {
    if (!live) return
    const timer = setInterval(() => !document.hidden && void poll(), POLL_MS)
    return () => clearInterval(timer)
  }, [live, poll])
  useChange(useCallback((change) => change.topic === `run:${run}` && Boolean(change.lines) && void poll(), [run, poll]))

  const earlier = useCallback(() => {
    tail.current = Math.min(tail.current * 4, 1_000_000)
    void loadTail()
  }, [loadTail])

  const firstError = useCallback(async () => {
    const held = complete ? lines.find((line) => line.level === 'error') : undefined
    if (held) return held.id
    const found = await get<LogPage>(`/runs/${seg(run)}/logs`, { level: 'error', rank, attempt, limit: 1 })
    const line = found.lines[0]
    if (!line) return ''
    if (lines.some((one) => one.id === line.id)) return line.id
    const rest = await page({ after: line.id, limit: PAGE })
    turn.current += 1
    next.current = rest.next ?? ''
    setLines([line, ...rest.lines.filter((one) => one.id !== line.id)])
    setComplete(false)
    return line.id
  }, [complete, lines, run, rank, attempt, page])

  const toEnd = useCallback(() => {
    tail.current = FIRST
    void loadTail()
  }, [loadTail])

  return { lines, complete, loading, error, earlier, firstError, toEnd }
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
