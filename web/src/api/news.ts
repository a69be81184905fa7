/** News of the server made useful: which answers are stale now, and whether the stream is there. */

import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { type Change, Live, type LiveState } from './live'
import { MANY } from './queries'

let live: Live | null = null
const shared = () => {
  live ??= new Live()
  return live
}

/** Ask for news of a topic while the component is there. */
export function useTopic(topic: string): void {
  useEffect(() => (topic ? shared().want(topic) : undefined), [topic])
}

export function useChange(fn: (change: Change) => void): void {
  useEffect(() => shared().onChange(fn), [fn])
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(shared().onState, () => shared().state)
}

/** Which answers a change makes stale. */
export function staleKeys(change: Change): string[][] {
  const id = change.run_id ?? ''
  const data = change.kind === 'data'
  if (change.topic === 'reset') return [[]]
  if (change.topic === 'runs' && data) return [['runs']]
  if (change.topic === 'runs') return [['runs'], ['status'], ['projects']]
  if (change.topic === 'queue') return [['pool'], ['status']]
  if (data && !change.points) return [['run', id, 'detail']]
  if (data)
    return [
      ['run', id, 'series'],
      ['run', MANY, 'series'],
      ['run', id, 'keys'],
      ['run', id, 'detail'],
    ]
  return [
    ['run', id, 'detail'],
    ['run', id, 'events'],
    ['run', id, 'artifacts'],
    ['run', id, 'lineage'],
  ]
}

/** Points and progress come several times a second and may wait; a change of state may not. */
const DATA_MS = 2000
const STATE_MS = 400
const timers = new Map<string, ReturnType<typeof setTimeout>>()

/** Many changes in a short time make one request: the first waits a moment, the rest ride along. */
function refresh(client: QueryClient, key: string[], waitMs: number): void {
  const id = `${waitMs} ${key.join(' ')}`
  if (timers.has(id)) return
  timers.set(
    id,
    setTimeout(() => {
      timers.delete(id)
      void client.invalidateQueries({ queryKey: key })
    }, waitMs),
  )
}

const POLL_MS = 10_000

/** Once, in the shell: news marks answers stale; without a stream the pages ask every ten seconds. */
export function useLiveUpdates(): void {
  const client = useQueryClient()
  const state = useLiveState()
  useEffect(
    () =>
      shared().onChange((change) => {
        for (const key of staleKeys(change)) refresh(client, key, change.kind === 'data' ? DATA_MS : STATE_MS)
      }),
    [client],
  )
  useEffect(() => {
    if (state === 'live') return
    const timer = setInterval(() => {
      if (document.hidden) return
      for (const key of [['runs'], ['run'], ['pool']]) void client.invalidateQueries({ queryKey: key })
    }, POLL_MS)
    return () => clearInterval(timer)
  }, [client, state])
}
