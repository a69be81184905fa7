import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { ModelVersionView } from '@/api/types'
import { measure, plain } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Digest } from '@/ui/Small'

/** What a version was made of, as it stood when it was registered. */
export function Provenance({ version }: { version: ModelVersionView }) {
  const { t } = useTranslation()
  const rows = told(version.provenance ?? {}).filter(([name]) => name !== 'run_ref')
  if (rows.length === 0) return null
  return (
    <Panel title={t('provenance_of', { ref: `${version.model}@${version.version}` })}>
      <Facts
        rows={rows.map(([name, value]) => [
          name.replaceAll('_', ' '),
          name === 'run' && version.run_id ? (
            <Link key={name} to="/runs/$run" params={{ run: version.run_id }}>
              {version.run_ref || version.run_id}
            </Link>
          ) : (
            <Value key={name} name={name} value={value} />
          ),
        ])}
      />
    </Panel>
  )
}

/** What says something: empty values and the machine's own metrics are left out. */
function told(record: Record<string, unknown>): [string, unknown][] {
  return Object.entries(record).filter(
    ([name, value]) =>
      value !== null && value !== '' && !(Array.isArray(value) && value.length === 0) && !/^system\//.test(name),
  )
}

function Value({ name, value }: { name: string; value: unknown }) {
  if (typeof value === 'string' && value.startsWith('b3:')) return <Digest value={value} />
  if (typeof value === 'number') return <span className="num">{measure(name, value, 8)}</span>
  if (Array.isArray(value))
    // biome-ignore lint/suspicious/noArrayIndexKey: a record does not move
    return value.map((one, i) => <Value key={i} name={name} value={one} />)
  if (value !== null && typeof value === 'object')
    return (
      <Facts
        rows={told(value as Record<string, unknown>).map(([inner, of]) => [
          inner.replaceAll('_', ' '),
          <Value key={inner} name={inner} value={of} />,
        ])}
      />
    )
  return <span className="num">{plain(value)}</span>
}
