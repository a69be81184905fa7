import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { ModelVersionView } from '@/api/types'
import type { Key } from '@/i18n'
import { measure, plain, size } from '@/lib/format'
import { told } from '@/lib/told'
import { Facts, Panel } from '@/ui/Blocks'
import { Digest } from '@/ui/Small'

/** The record's own names; those below params, metrics and data were given by people and stay as they are. */
const NAMES: Record<string, Key> = {
  run: 'col_run',
  attempt: 'attempt',
  tree: 'tree',
  environment: 'environment',
  seed: 'seed',
  params: 'tab_params',
  recipe: 'recipe',
  data: 'data',
  from: 'started_from',
  checkpoint: 'checkpoint',
  metrics: 'tab_metrics',
  stage: 'stage',
  name: 'name',
  step: 'step',
  digest: 'digest',
  ref: 'reference',
  dataset: 'dataset',
  version: 'version',
  kind: 'kind',
  state: 'col_state',
  run_id: 'col_run',
  files: 'files',
  size_bytes: 'size',
}
/** How deep the names inside are those that people gave. */
const GIVEN: Record<string, number> = { params: 99, metrics: 99, data: 1 }

/** What a version was made of, as it stood when it was registered. */
export function Provenance({ version }: { version: ModelVersionView }) {
  const { t } = useTranslation()
  const rows = told(version.provenance ?? {}).filter(([name]) => name !== 'run_ref')
  if (rows.length === 0) return null
  return (
    <Panel title={t('provenance_of', { ref: `${version.model}@${version.version}` })}>
      <Facts
        rows={rows.map(([name, value]) => [
          <Name key={`n-${name}`} name={name} />,
          name === 'run' && version.run_id ? (
            <Link key={name} to="/runs/$run" params={{ run: version.run_id }}>
              {version.run_ref || version.run_id}
            </Link>
          ) : (
            <Value key={name} name={name} value={value} given={GIVEN[name] ?? 0} />
          ),
        ])}
      />
    </Panel>
  )
}

function Name({ name }: { name: string }) {
  const { t } = useTranslation()
  const key = NAMES[name]
  return <>{key ? t(key) : name.replaceAll('_', ' ')}</>
}

interface ValueProps {
  name: string
  value: unknown
  given?: number
}

function Value({ name, value, given = 0 }: ValueProps) {
  if (typeof value === 'string' && value.startsWith('b3:')) return <Digest value={value} />
  if (typeof value === 'number')
    return <span className="num">{name === 'size_bytes' ? size(value) : measure(name, value, 8)}</span>
  if (Array.isArray(value))
    // biome-ignore lint/suspicious/noArrayIndexKey: a record does not move
    return value.map((one, i) => <Value key={i} name={name} value={one} />)
  if (value !== null && typeof value === 'object')
    return (
      <Facts
        rows={told(value as Record<string, unknown>).map(([inner, of]) => [
          given > 0 ? inner : <Name key={`n-${inner}`} name={inner} />,
          <Value key={inner} name={inner} value={of} given={given - 1} />,
        ])}
      />
    )
  return <span className="num">{plain(value)}</span>
}
