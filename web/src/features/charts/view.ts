import type { CompareSearch, RunSearch } from '@/lib/search'

/** How all charts of a page are drawn; read from the address. */
export interface View {
  /** step, relative, wall, or `metrics.KEY`: another metric. */
  x: string
  log: boolean
  /** Leave out what stands far from the rest, so that one spike does not flatten a curve. */
  clip: boolean
  smoothing: number
  /** A thousandth of the run's length on x. */
  unit: number
  from: number | undefined
  to: number | undefined
  allAttempts: boolean
  allRanks: boolean
}

/** A run among those that are drawn together. Its pen stays the same whatever else is shown. */
export interface Drawn {
  id: string
  label: string
  pen: number
}

export type ChartSearch = Pick<
  RunSearch & CompareSearch,
  'x' | 'log' | 'clip' | 'smooth' | 'from' | 'to' | 'attempts' | 'ranks' | 'find' | 'table' | 'pins'
>

export function viewOf(search: ChartSearch, steps: number, seconds: number): View {
  const x = search.x ?? 'step'
  return {
    x,
    unit: Math.max(x === 'relative' || x === 'wall' ? seconds : steps, 1) / 1000,
    log: search.log === '1',
    clip: search.clip === '1',
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
