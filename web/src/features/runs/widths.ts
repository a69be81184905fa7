import { useState } from 'react'

const STORE = 'trackbed.widths'

function read(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(STORE) ?? '{}') as Record<string, number>
  } catch {
    return {}
  }
}

/** Widths that a person dragged, kept in this browser. */
export function useWidths() {
  const [widths, setWidths] = useState(read)
  const setWidth = (id: string, width: number) =>
    setWidths((was) => {
      const now = { ...was, [id]: width }
      localStorage.setItem(STORE, JSON.stringify(now))
      return now
    })
  return { widths, setWidth }
}
