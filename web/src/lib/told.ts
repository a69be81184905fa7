/** What of a record says something: without what is empty, at any depth, and without the machine's own metrics. */
export function told(record: Record<string, unknown>): [string, unknown][] {
  return Object.entries(record).filter(([name, value]) => says(value) && !name.startsWith('system/'))
}

function says(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(says)
  if (value !== null && typeof value === 'object') return told(value as Record<string, unknown>).length > 0
  return value !== null && value !== undefined && value !== ''
}
