import type { RunSearch } from '@/lib/search'

/** How all charts of a page are drawn; read from the address. */
export interface View {
  x: 'step' | 'relative' | 'wall'
  log: boolean
  smoothing: number
  /** A thousandth of the run's length on x. */
  unit: number
  from: number | undefined
  to: number | undefined
  allAttempts: boolean
  allRanks: boolean
}

export function viewOf(search: RunSearch, steps: number, seconds: number): View {
  const x = search.x ?? 'step'
  return {
    x,
    unit: Math.max(x === 'step' ? steps : seconds, 1) / 1000,
    log: search.log === '1',
    smoothing: Math.min(0.999, Math.max(0, finite(search.smooth) ?? 0)),
    from: finite(search.from),
    to: finite(search.to),
    allAttempts: search.attempts === 'all',
    allRanks: search.ranks === 'all',
  }
}

function finite(text: string | undefined): number | undefined {
  const value = Number(text)
  return text !== undefined && text !== '' && Number.isFinite(value) ? value : undefined
}
