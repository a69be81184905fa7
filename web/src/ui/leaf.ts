/** How the thing on the page is called (`demo#17` instead of an id): the page says it, the crumbs and the title show it. */

import { useEffect, useSyncExternalStore } from 'react'

let leaf = ''
const listeners = new Set<() => void>()

function set(name: string): void {
  leaf = name
  for (const fn of listeners) fn()
}

export function useSayLeaf(name: string): void {
  useEffect(() => {
    set(name)
    document.title = name ? `${name} · Trackbed` : 'Trackbed'
    return () => {
      set('')
      document.title = 'Trackbed'
    }
  }, [name])
}

export function useLeaf(): string {
  return useSyncExternalStore(
    (fn) => {
      listeners.add(fn)
      return () => listeners.delete(fn)
    },
    () => leaf,
  )
}
