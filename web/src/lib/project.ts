/** The project that the pages look at: in the URL where a page has it, else the last one chosen. "" is all of them. */

import { useSyncExternalStore } from 'react'

const STORE = 'trackbed.project'
const listeners = new Set<() => void>()

export function useProject(): [string, (name: string) => void] {
  const name = useSyncExternalStore(
    (fn) => {
      listeners.add(fn)
      return () => listeners.delete(fn)
    },
    () => localStorage.getItem(STORE) ?? '',
  )
  return [name, setProject]
}

export function setProject(name: string): void {
  localStorage.setItem(STORE, name)
  for (const fn of listeners) fn()
}
