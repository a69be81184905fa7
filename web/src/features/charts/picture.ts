/** From the server's series to what uPlot draws. Pure; tested without a canvas. */

import type { Series } from '@/api/types'
import { align, type Cell, finite, type Gap, type Mark, marks, positive, smooth } from '@/lib/series'
import type { Drawn } from './view'

export interface Line {
  label: string
  /** Index of its colour. */
  pen: number
  role: 'low' | 'high' | 'raw' | 'line'
}

export interface Picture {
  x: number[]
  columns: (Gap | undefined)[][]
  lines: Line[]
  marks: Mark[]
  /** Values left out of a log axis. */
  dropped: number
  points: number
  bucketed: boolean
  /** Ranges of x in which something was noticed. */
  spans: Span[]
}

export interface Span {
  from: number
  to: number
  open: boolean
}

interface Options {
  smoothing: number
  /** Distance on x over which `smoothing` is the share kept. */
  unit?: number
  log: boolean
  /** Runs that are drawn together; one run is told apart by its ranks and attempts. */
  runs?: Drawn[]
  spans?: Span[]
}

/** With more curves than this a band for each would hide the lines. */
const BANDS = 6

export function picture(series: Series[], { smoothing, unit = 1, log, runs = [], spans = [] }: Options): Picture {
  const lines: Line[] = []
  const found: Mark[] = []
  let dropped = 0
  const known = new Map(runs.map((run) => [run.id, run]))
  const banded = series.length <= BANDS
  const curves = series.map((one, at) => {
    const x = one.x ?? []
    const cells: Cell[] = one.mean?.length ? one.mean : (one.last ?? [])
    const run = runs.length > 1 ? known.get(one.run) : undefined
    const label = run ? [run.label, one.stream].filter(Boolean).join(' ') : (one.stream ?? '')
    const pen = run ? run.pen : at
    const raw = cells.map(finite)
    found.push(...marks(x, one.last ?? cells))
    if (one.bucketed) found.push(...hidden(one))
    const smoothed = smoothing > 0 ? smooth(x, raw, smoothing, unit) : raw
    const ys: Gap[][] = []
    if (one.bucketed && banded) {
      ys.push((one.min ?? []).map(finite), (one.max ?? []).map(finite))
      lines.push({ label, pen, role: 'low' }, { label, pen, role: 'high' })
    }
    if (smoothing > 0) {
      ys.push(raw)
      lines.push({ label, pen, role: 'raw' })
    }
    ys.push(smoothed)
    lines.push({ label, pen, role: 'line' })
    if (!log) return { x, ys }
    const kept = ys.map(positive)
    dropped += kept.at(-1)?.dropped ?? 0
    return { x, ys: kept.map((one) => one.y) }
  })
  const { x, ys } = align(curves)
  return {
    x,
    columns: ys,
    lines,
    marks: unique(found),
    dropped,
    points: series.reduce((sum, one) => sum + (one.points ?? one.x?.length ?? 0), 0),
    bucketed: series.some((one) => one.bucketed),
    spans,
  }
}

/** Buckets that hold something not finite among numbers: their edges say ±∞, else it was NaN. */
function hidden(one: Series): Mark[] {
  const found = [...marks(one.x ?? [], one.min ?? []), ...marks(one.x ?? [], one.max ?? [])]
  one.non_finite?.forEach((n, i) => {
    const x = one.x?.[i]
    if (n > 0 && x !== undefined && !found.some((mark) => mark.x === x)) found.push({ x, what: 'NaN' })
  })
  return found
}

function unique(found: Mark[]): Mark[] {
  return [...new Map(found.map((mark) => [`${mark.x} ${mark.what}`, mark])).values()]
}

/** The words of a chart for people who cannot see it. */
export function spoken(key: string, picture: Picture, format: (value: number) => string): string {
  const parts = picture.lines
    .map((line, i) => ({ line, column: picture.columns[i] ?? [] }))
    .filter(({ line }) => line.role === 'line')
    .map(({ line, column }) => {
      const last = column.findLast((value) => typeof value === 'number')
      return `${line.label || key}: ${typeof last === 'number' ? format(last) : '–'}`
    })
  return [key, ...parts].join(', ')
}
