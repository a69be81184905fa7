/** News of the server made useful: which answers are stale now, and whether the stream is there. */

import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect, useSyncExternalStore } from 'react'
import { type Change, Live, type LiveState } from './live'

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
  if (change.topic === 'runs') return [['runs'], ['status'], ['projects']]
  if (change.topic === 'queue') return [['pool'], ['status']]
  const kind = change.kind ?? ''
  if (/metric|point|series|frame/.test(kind)) return [['run', id, 'series'], ['run', id, 'keys']]
  if (/^logs?\b|line/.test(kind)) return []
  return [['run', id, 'detail'], ['run', id, 'events'], ['run', id, 'artifacts'], ['run', id, 'lineage']]
}

const WAIT_MS: Record<string, number> = { series: 1500, keys: 3000 }
const timers = new Map<string, ReturnType<typeof setTimeout>>()

/** Many changes in a short time make one request: the first waits a moment, the rest ride along. */
function refresh(client: QueryClient, key: string[]): void {
  const id = key.join(' ')
  if (timers.has(id)) return
  timers.set(
    id,
    setTimeout(() => {
      timers.delete(id)
      void client.invalidateQueries({ queryKey: key })
    }, WAIT_MS[key[2] ?? ''] ?? 600),
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
        for (const key of staleKeys(change)) refresh(client, key)
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
