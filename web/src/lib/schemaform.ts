/** From the JSON Schema of a template to the fields of a form, and from a field back to the values of a spec. Pure. */

export interface Schema {
  type?: string
  title?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
  readOnly?: boolean
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

export type FieldKind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'list' | 'json'

export interface FormField {
  path: string[]
  name: string
  title: string
  about: string
  kind: FieldKind
  required: boolean
  locked: boolean
  preset: unknown
  choices: unknown[]
  least: number | undefined
  most: number | undefined
}

export interface FormGroup {
  /** Name of the mapping that holds them; '' for the outer fields. */
  name: string
  fields: FormField[]
}

/** What every run may say, whether or not the template speaks of it. */
const ALWAYS: Record<string, Schema> = {
  project: { type: 'string' },
  name: { type: 'string' },
  description: { type: 'string' },
  tags: { type: 'array', items: { type: 'string' } },
}
const KNOWN: Record<string, Schema> = {
  seed: { type: 'integer', minimum: 0 },
  recipe: { type: 'string' },
  run: { type: 'string' },
  determinism: { type: 'string', enum: ['exact', 'recorded'] },
  priority: { type: 'string', enum: ['urgent', 'high', 'normal', 'low', 'idle'] },
}

export function groupsOf(schema: Schema): FormGroup[] {
  const properties = { ...ALWAYS, ...schema.properties }
  const outer: FormField[] = []
  const groups: FormGroup[] = []
  const walk = (path: string[], holder: Schema, into: FormField[]) => {
    for (const [name, raw] of Object.entries(holder.properties ?? {})) {
      const known = path.length === 0 ? (ALWAYS[name] ?? KNOWN[name]) : undefined
      const one = { ...known, ...raw }
      const at = [...path, name]
      if (one.properties && !one.readOnly) {
        if (path.length > 0) walk(at, one, into)
        else {
          const fields: FormField[] = []
          walk(at, one, fields)
          groups.push({ name, fields })
        }
      } else into.push(fieldOf(at, one, (holder.required ?? []).includes(name)))
    }
  }
  walk([], { ...schema, properties }, outer)
  return [{ name: '', fields: outer }, ...groups]
}

function fieldOf(path: string[], schema: Schema, required: boolean): FormField {
  const choices = schema.enum ?? []
  return {
    path,
    name: path.join('.'),
    title: schema.title || path.slice(1).join('.') || path[0]!,
    about: schema.description ?? '',
    kind: kindOf(schema, choices),
    required,
    locked: schema.readOnly ?? false,
    preset: schema.default,
    choices,
    least: schema.minimum,
    most: schema.maximum,
  }
}

function kindOf(schema: Schema, choices: unknown[]): FieldKind {
  if (choices.length) return 'choice'
  const type = schema.type ?? typeOf(schema.default)
  if (type === 'number' || type === 'integer' || type === 'boolean') return type
  if (type === 'array') return (schema.items?.type ?? 'string') === 'string' ? 'list' : 'json'
  return type === 'object' ? 'json' : 'text'
}

function typeOf(value: unknown): string {
  if (typeof value === 'number') return 'number'
  if (typeof value === 'boolean') return 'boolean'
  if (Array.isArray(value)) return value.every((one) => typeof one === 'string') ? 'array' : 'object'
  return value !== null && typeof value === 'object' ? 'object' : 'string'
}

export type Values = Record<string, unknown>

export function getAt(values: Values, path: string[]): unknown {
  return path.reduce<unknown>(
    (at, part) => (at !== null && typeof at === 'object' ? (at as Values)[part] : undefined),
    values,
  )
}

/** Values with one of them changed; `undefined` takes it out, and mappings that become empty with it. */
export function setAt(values: Values, path: string[], value: unknown): Values {
  const [name = '', ...rest] = path
  const next = { ...values }
  if (rest.length === 0) {
    if (value === undefined) delete next[name]
    else next[name] = value
    return next
  }
  const inner = values[name]
  const holder = inner !== null && typeof inner === 'object' && !Array.isArray(inner) ? (inner as Values) : {}
  const made = setAt(holder, rest, value)
  if (Object.keys(made).length === 0) delete next[name]
  else next[name] = made
  return next
}

/** The fault that belongs to a field: its own, or that of something inside it. */
export function belongs(field: string, fault: string): boolean {
  return fault === field || fault.startsWith(`${field}.`) || fault.startsWith(`${field}[`)
}
