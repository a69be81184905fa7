import { useTranslation } from 'react-i18next'
import type { ModelVersionView } from '@/api/types'
import { plain } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Digest } from '@/ui/Small'

/** What a version was made of, as it stood when it was registered. */
export function Provenance({ version }: { version: ModelVersionView }) {
  const { t } = useTranslation()
  const rows = Object.entries(version.provenance ?? {})
  if (rows.length === 0) return null
  return (
    <Panel title={t('provenance_of', { ref: `${version.model}@${version.version}` })}>
      <Facts rows={rows.map(([name, value]) => [name.replaceAll('_', ' '), <Value key={name} value={value} />])} />
    </Panel>
  )
}

function Value({ value }: { value: unknown }) {
  if (typeof value === 'string' && value.startsWith('b3:')) return <Digest value={value} />
  if (value !== null && typeof value === 'object' && !Array.isArray(value))
    return <Facts rows={Object.entries(value).map(([name, inner]) => [name, <Value key={name} value={inner} />])} />
  return <span className="num">{plain(value)}</span>
}
