/** What of a page stands in its address. Unknown words are dropped, so an old link still opens. */

export interface RunsSearch {
  q?: string
  sort?: string
  up?: string
  cols?: string
}

export interface RunSearch {
  // metrics
  x?: 'relative' | 'wall'
  log?: string
  smooth?: string
  from?: string
  to?: string
  attempts?: string
  ranks?: string
  find?: string
  table?: string
  // logs
  level?: string
  rank?: string
  grep?: string
  attempt?: string
  // code, environment, artifacts
  file?: string
}

type Raw = Record<string, unknown>

function pick<T extends string>(raw: Raw, names: readonly T[]): Partial<Record<T, string>> {
  const kept: Partial<Record<T, string>> = {}
  for (const name of names) if (typeof raw[name] === 'string' && raw[name] !== '') kept[name] = raw[name]
  return kept
}

export function readRuns(raw: Raw): RunsSearch {
  return pick(raw, ['q', 'sort', 'up', 'cols'])
}

export function readRun(raw: Raw): RunSearch {
  const { x, ...rest } = pick(raw, [
    'x', 'log', 'smooth', 'from', 'to', 'attempts', 'ranks', 'find', 'table', 'level', 'rank', 'grep', 'attempt', 'file',
  ]) // biome-ignore format: a list of names
  return x === 'relative' || x === 'wall' ? { ...rest, x } : rest
}
