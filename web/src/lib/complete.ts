/** What may come next in a filter of the runs table: pure, from the text in front of the caret. */

export interface Names {
  metrics: string[]
  params: string[]
  tags: string[]
  /** Known texts of some fields: owners, projects. */
  values: Record<string, string[]>
}

export interface Completion {
  /** The part of the text that an option replaces. */
  from: number
  to: number
  options: string[]
}

const FIELDS = [
  'state', 'cause', 'name', 'ref', 'owner', 'project', 'space', 'tags', 'priority', 'cards', 'attempt', 'step', 'duration',
  'created', 'started', 'ended', 'card_seconds', 'description', 'tree', 'environment', 'outside', 'number', 'metrics.', 'params.',
] // biome-ignore format: a list of names
const STATES = [
  'running', 'queued', 'finished', 'failed', 'stopped', 'paused', 'held', 'preparing', 'starting', 'stopping', 'draft',
] // biome-ignore format: a list of names
const MOST = 12

/** A field as the search language reads it: quoted where its name holds more than one word. */
export function fieldOf(group: 'metrics' | 'params', key: string): string {
  return /^[\w/@:+%#-]+(\.[\w/@:+%#-]+)*$/.test(key) ? `${group}.${key}` : `${group}.'${key.replaceAll("'", "''")}'`
}

export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

export function complete(text: string, caret: number, names: Names): Completion | null {
  const before = text.slice(0, caret)
  const open = (before.match(/'/g) ?? []).length % 2 === 1
  const value = before.match(/([\w.]+)\s*(=|!=|has|in\s*\((?:\s*'[^']*'\s*,)*)\s*('?)([^'(),=<>]*)$/i)
  if (value) {
    const [, field = '', , mark = '', part = ''] = value
    const known = valuesOf(field, names)
    if (!known.length || (mark && !open)) return null
    return made(caret - part.length - mark.length, caret, known.map(quoted), part)
  }
  if (open) return null
  const word = before.match(/[^\s(),=<>!]*$/)?.[0] ?? ''
  const lead = before.slice(0, before.length - word.length).trimEnd()
  if (!/(^|\(|\b(and|or|not))$/i.test(lead)) {
    const tail = lead.match(/(?:^|[\s(])(\S+)$/)?.[1] ?? ''
    const ended = /['")\d]$|\b(true|false|nan|inf)$/i.test(lead)
    if (ended) return made(caret - word.length, caret, ['and ', 'or '], word)
    if (/[=<>]$/.test(lead) || !tail) return null
    return made(caret - word.length, caret, ['= ', '!= ', '< ', '> ', 'in (', 'has ', 'like '], word)
  }
  const fields = [
    ...FIELDS,
    ...names.metrics.map((key) => fieldOf('metrics', key)),
    ...names.params.map((key) => fieldOf('params', key)),
  ]
  return made(caret - word.length, caret, fields, word)
}

function valuesOf(field: string, names: Names): string[] {
  if (field === 'state') return STATES
  if (field === 'tags') return names.tags
  return names.values[field] ?? []
}

/** Options that begin with the part come first, then those that hold it; behind `metrics.` a part of the key is enough. */
function made(from: number, to: number, all: string[], part: string): Completion | null {
  const low = part.toLowerCase()
  const [, group = '', rest = low] = low.match(/^(metrics\.|params\.)(.*)$/) ?? []
  const bare = (one: string) => one.toLowerCase().replaceAll("'", '')
  const begins = all.filter((one) => bare(one).startsWith(low))
  const within = (one: string) => bare(one).startsWith(group) && bare(one).slice(group.length).includes(rest)
  const holds = rest ? all.filter((one) => !bare(one).startsWith(low) && within(one)) : []
  const options = [...begins, ...holds].slice(0, MOST)
  if (!options.length || (options.length === 1 && options[0]!.trimEnd().toLowerCase() === low)) return null
  return { from, to, options }
}
