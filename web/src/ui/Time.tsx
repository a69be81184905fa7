import { Tooltip } from '@mantine/core'
import { useSyncExternalStore } from 'react'
import { locale } from '@/i18n'
import { ago, duration, moment } from '@/lib/format'

let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(fn: () => void): () => void {
  listeners.add(fn)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of listeners) one()
  }, 1000)
  return () => {
    listeners.delete(fn)
    if (listeners.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
}

const fresh = () => {
  if (Date.now() - now > 1500) now = Date.now()
  return now
}

/** The present in ms; every clock of the page ticks together, once a second, and only while one is shown. */
export function useNow(on = true): number {
  return useSyncExternalStore(on ? subscribe : nothing, fresh)
}

const nothing = () => () => {}

/** "3 min ago"; the exact moment on hover. */
export function Ago({ us }: { us: number | undefined }) {
  const at = useNow(Boolean(us))
  if (!us) return <span className="dim">–</span>
  return (
    <Tooltip label={moment(us, locale())}>
      <time dateTime={new Date(us / 1000).toISOString()} style={{ whiteSpace: 'nowrap' }}>
        {ago(us, at, locale())}
      </time>
    </Tooltip>
  )
}

/** Time between two moments; it runs on while the second is not there. */
export function Span({ from, to }: { from: number | undefined; to?: number | undefined }) {
  const at = useNow(Boolean(from) && !to)
  if (!from) return <span className="dim">–</span>
  return <span className="num">{duration(((to || at * 1000) - from) / 1e6)}</span>
}
