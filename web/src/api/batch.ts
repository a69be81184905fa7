/** Curves asked for in the same tick with the same range travel as one request: visible cards only, one round trip. */

import { send } from './client'
import type { Series, SeriesQuery, SeriesReply } from './types'

type Ask = Omit<SeriesQuery, 'keys'> & { key: string }

interface Waiting {
  key: string
  done: (series: Series[]) => void
  fail: (error: unknown) => void
}

const queues = new Map<string, { query: SeriesQuery; waiting: Waiting[] }>()

export function series(ask: Ask): Promise<Series[]> {
  const { key, ...rest } = ask
  const id = JSON.stringify(rest)
  return new Promise((done, fail) => {
    const queue = queues.get(id)
    if (queue) {
      queue.waiting.push({ key, done, fail })
      return
    }
    queues.set(id, { query: { ...rest, keys: [] }, waiting: [{ key, done, fail }] })
    setTimeout(() => void flush(id), 12)
  })
}

async function flush(id: string): Promise<void> {
  const queue = queues.get(id)
  queues.delete(id)
  if (!queue) return
  const keys = [...new Set(queue.waiting.map((one) => one.key))]
  try {
    const reply = await send<SeriesReply>('POST', '/series', { ...queue.query, keys })
    for (const one of queue.waiting) one.done((reply.series ?? []).filter((curve) => curve.key === one.key))
  } catch (error) {
    for (const one of queue.waiting) one.fail(error)
  }
}
