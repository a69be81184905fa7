/** What of a page stands in its address. Unknown words are dropped, so an old link still opens. */

export interface RunsSearch {
  q?: string
  sort?: string
  up?: string
  cols?: string
  /** Fields to group by, with commas between. */
  group?: string
  /** The saved view that was opened. */
  view?: string
}

export interface CompareSearch {
  /** Ids of runs, with commas between. */
  runs?: string
  tab?: string
  all?: string
  x?: string
  log?: string
  clip?: string
  smooth?: string
  from?: string
  to?: string
  attempts?: string
  ranks?: string
  find?: string
  table?: string
  pins?: string
}

export interface NewSearch {
  template?: string
  /** A run that the new one is made from. */
  like?: string
}

export function readNew(raw: Raw): NewSearch {
  return pick(raw, ['template', 'like'])
}

export interface RunSearch {
  // metrics
  x?: string
  log?: string
  clip?: string
  pins?: string
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
  line?: string
  // code, environment, artifacts
  file?: string
}

type Raw = Record<string, unknown>

function pick<T extends string>(raw: Raw, names: readonly T[]): Partial<Record<T, string>> {
  const kept: Partial<Record<T, string>> = {}
  for (const name of names) if (typeof raw[name] === 'string' && raw[name] !== '') kept[name] = raw[name]
  return kept
}

/** A search as the address writes it behind its `?`: the same words in the same order whoever writes them. */
export function queryText(search: object): string {
  const kept = Object.entries(search).filter(([, value]) => typeof value === 'string' && value !== '')
  return new URLSearchParams(kept.sort(([a], [b]) => (a < b ? -1 : 1)) as [string, string][]).toString()
}

export function readRuns(raw: Raw): RunsSearch {
  return pick(raw, ['q', 'sort', 'up', 'cols', 'group', 'view'])
}

const CHARTS = [
  'x', 'log', 'clip', 'smooth', 'from', 'to', 'attempts', 'ranks', 'find', 'table', 'pins',
] as const // biome-ignore format: a list of names

/** An axis that there is: another word would make every chart an error. */
function axis<T extends { x?: string }>(search: T): T {
  const { x, ...rest } = search
  return x === 'relative' || x === 'wall' || x?.startsWith('metrics.') ? search : (rest as T)
}

export function readCompare(raw: Raw): CompareSearch {
  return axis(pick(raw, ['runs', 'tab', 'all', ...CHARTS]))
}

export function readRun(raw: Raw): RunSearch {
  return axis(pick(raw, [...CHARTS, 'level', 'rank', 'grep', 'attempt', 'line', 'file']))
}
