import { useTranslation } from 'react-i18next'
import type { AttemptView, InputFetch } from '@/api/types'
import { duration, size } from '@/lib/format'
import { Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'

/** What the newest attempt that fetched anything needed, and how much of it was there already. */
export function Inputs({ attempts }: { attempts: AttemptView[] }) {
  const { t } = useTranslation()
  const attempt = attempts.findLast((one) => (one.inputs ?? []).length > 0)
  if (!attempt) return null
  const title = t('inputs_of', { n: attempt.number })
  return (
    <Panel title={title} flush>
      <Table
        label={title}
        rows={attempt.inputs ?? []}
        rowKey={(one) => one.name}
        columns={[
          { id: 'name', title: t('name'), cell: (one) => <span className="mono">{one.name}</span> },
          { id: 'size', title: t('size'), right: true, cell: (one) => size(one.size_bytes ?? 0) },
          { id: 'fetched', title: t('inputs_fetched'), right: true, cell: (one) => size(one.fetched_bytes ?? 0) },
          { id: 'hit', title: t('inputs_hit'), right: true, cell: hit },
          { id: 'wait', title: t('waited'), right: true, cell: (one) => duration(one.seconds ?? 0) },
        ]}
      />
    </Panel>
  )
}

/** The share that lay in the node's cache; nothing is said of an input of no bytes. */
function hit({ size_bytes: whole = 0, fetched_bytes: fetched = 0 }: InputFetch): string {
  return whole > 0 ? `${Math.round((1 - Math.min(fetched, whole) / whole) * 100)}%` : '–'
}
