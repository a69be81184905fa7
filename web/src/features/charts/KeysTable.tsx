import { useTranslation } from 'react-i18next'
import type { KeyInfo } from '@/api/types'
import { locale } from '@/i18n'
import { count, measure, number } from '@/lib/format'
import { Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'

/** The charts as a table: for screen readers, for copying, and when a number says more than a line. */
export function KeysTable({ keys }: { keys: KeyInfo[] }) {
  const { t } = useTranslation()
  const at = (key: string, value: number | string | null | undefined, step: number | null | undefined) => (
    <>
      {measure(key, value)}
      {typeof step === 'number' && <span className="dim"> @ {number(step)}</span>}
    </>
  )
  return (
    <Panel flush>
      <Table
        label={t('tab_metrics')}
        rows={keys}
        rowKey={(info) => info.key}
        columns={[
          { id: 'key', title: t('metric'), cell: (info) => <span className="mono">{info.key}</span> },
          { id: 'last', title: t('last'), right: true, cell: (info) => at(info.key, info.last, info.last_step) },
          { id: 'min', title: t('min'), right: true, cell: (info) => at(info.key, info.min, info.argmin) },
          { id: 'max', title: t('max'), right: true, cell: (info) => at(info.key, info.max, info.argmax) },
          { id: 'first', title: t('first'), right: true, cell: (info) => measure(info.key, info.first) },
          { id: 'count', title: t('points'), right: true, cell: (info) => count(info.count ?? 0, locale()) },
          {
            id: 'bad',
            title: t('not_finite'),
            right: true,
            cell: (info) => (info.non_finite ? <b style={{ color: 'var(--tone-red)' }}>{info.non_finite}</b> : '–'),
          },
        ]}
      />
    </Panel>
  )
}
