/** What stands between the server's buckets and the picture. Pure, in float64. */

export type Cell = number | string
export type Gap = number | null

export interface Curve {
  x: number[]
  mean: Cell[]
  min: Cell[]
  max: Cell[]
  points: number
}

export interface Mark {
  x: number
  what: 'NaN' | 'Infinity' | '-Infinity'
}

/** A number to draw, or null for a word (NaN, ±Infinity). */
export function finite(cell: Cell | undefined): Gap {
  return typeof cell === 'number' && Number.isFinite(cell) ? cell : null
}

/** Where a curve was not finite; each is drawn as a mark, because a diverging loss is what people look for. */
export function marks(x: number[], cells: Cell[]): Mark[] {
  const found: Mark[] = []
  cells.forEach((cell, i) => {
    const at = x[i]
    if (at !== undefined && (cell === 'NaN' || cell === 'Infinity' || cell === '-Infinity'))
      found.push({ x: at, what: cell })
  })
  return found
}

/**
 * Debiased moving average, weighted by the distance on x.
 *
 * `weight` in [0, 1) is the share kept over one `unit` of x. The unit belongs to the run, not to the curve: a metric that
 * is logged rarely is smoothed as little as its distances ask, and neither buckets nor zoom nor length of a curve change
 * the picture. A constant stays constant. Gaps pass through.
 */
export function smooth(x: number[], y: Gap[], weight: number, unit = 1): Gap[] {
  if (weight <= 0 || unit <= 0) return y
  let sum = 0
  let norm = 0
  let before = x[0] ?? 0
  return y.map((value, i) => {
    if (value === null) return null
    const keep = weight ** ((x[i]! - before) / unit)
    before = x[i]!
    sum = sum * keep + value
    norm = norm * keep + 1
    return sum / norm
  })
}

/** One shared x for curves with different ones; absent places are undefined (a gap that the line spans). */
export function align(curves: { x: number[]; ys: (Gap | undefined)[][] }[]): {
  x: number[]
  ys: (Gap | undefined)[][]
} {
  const first = curves[0]
  if (!first) return { x: [], ys: [] }
  if (curves.every((c) => same(c.x, first.x))) return { x: first.x, ys: curves.flatMap((c) => c.ys) }
  const x = [...new Set(curves.flatMap((c) => c.x))].sort((a, b) => a - b)
  const place = new Map(x.map((value, i) => [value, i]))
  const ys = curves.flatMap((curve) =>
    curve.ys.map((column) => {
      const row = new Array<Gap | undefined>(x.length).fill(undefined)
      curve.x.forEach((at, i) => {
        row[place.get(at)!] = column[i]
      })
      return row
    }),
  )
  return { x, ys }
}

function same(a: number[], b: number[]): boolean {
  return a === b || (a.length === b.length && a.every((value, i) => value === b[i]))
}

/** Values at or below zero have no place on a log axis: they are dropped and counted, so that a note can say so. */
export function positive(y: Gap[]): { y: Gap[]; dropped: number } {
  let dropped = 0
  const kept = y.map((value) => {
    if (value === null || value > 0) return value
    dropped += 1
    return null
  })
  return { y: kept, dropped }
}

/** Range of the finite values with a little air; never empty. `clip` leaves out what lies far from the middle half. */
export function extent(columns: (Gap | undefined)[][], log = false, clip = false): [number, number] {
  let low = Number.POSITIVE_INFINITY
  let high = Number.NEGATIVE_INFINITY
  for (const column of columns)
    for (const value of column) {
      if (value === null || value === undefined || (log && value <= 0)) continue
      if (value < low) low = value
      if (value > high) high = value
    }
  if (clip && low < high) [low, high] = clipped(columns, log, low, high)
  if (low > high) return log ? [0.1, 10] : [0, 1]
  if (log) return [low / 1.1, high * 1.1]
  const air = (high - low) * 0.06 || Math.abs(high) * 0.05 || 0.5
  return [low - air, high + air]
}

/** The range without outliers: three times the distance between the quartiles beyond them. */
function clipped(columns: (Gap | undefined)[][], log: boolean, low: number, high: number): [number, number] {
  const to = (value: number) => (log ? Math.log(value) : value)
  const back = (value: number) => (log ? Math.exp(value) : value)
  const all = columns.flatMap((column) =>
    column.filter((value): value is number => typeof value === 'number' && (!log || value > 0)).map(to),
  )
  all.sort((a, b) => a - b)
  const [q1, q3] = [all[Math.floor(all.length / 4)]!, all[Math.floor((all.length * 3) / 4)]!]
  const reach = 3 * (q3 - q1)
  if (reach <= 0) return [low, high]
  return [Math.max(low, back(q1 - reach)), Math.min(high, back(q3 + reach))]
}

/** `train/loss` → `train`; a name without a slash stands in the unnamed section. */
export function section(key: string): string {
  const cut = key.lastIndexOf('/')
  return cut > 0 ? key.slice(0, cut) : ''
}
