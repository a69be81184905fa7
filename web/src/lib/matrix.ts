/** Runs side by side: one row a name, one value a run, and whether they differ. Pure. */

export interface MatrixRow {
  name: string
  values: unknown[]
  differs: boolean
}

export function matrix(records: Record<string, unknown>[]): MatrixRow[] {
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))].sort((a, b) => a.localeCompare(b))
  return names.map((name) => {
    const values = records.map((record) => record[name])
    const first = JSON.stringify(values[0])
    return { name, values, differs: values.some((value) => JSON.stringify(value) !== first) }
  })
}

/** Nested values as rows of their own: `schedule.kind`, so that a change is seen where it is. */
export function flat(record: Record<string, unknown>, prefix = ''): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(record)) {
    const path = prefix ? `${prefix}.${name}` : name
    const nested = value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0
    if (nested) Object.assign(found, flat(value as Record<string, unknown>, path))
    else found[path] = value
  }
  return found
}

/** Mean and spread of the numbers among some values. */
export function spread(values: unknown[]): { mean: number; std: number; count: number } | null {
  const numbers = values.filter((value): value is number => typeof value === 'number' && Number.isFinite(value))
  if (numbers.length === 0) return null
  const mean = numbers.reduce((sum, value) => sum + value, 0) / numbers.length
  const squares = numbers.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, std: numbers.length > 1 ? Math.sqrt(squares / (numbers.length - 1)) : 0, count: numbers.length }
}
