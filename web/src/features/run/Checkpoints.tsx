import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { command } from '@/lib/command'
import { number, size } from '@/lib/format'
import { Empty, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { Digest } from '@/ui/Small'
import { State } from '@/ui/State'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

export function Checkpoints({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const rows = [...(detail.checkpoints ?? [])].sort((a, b) => b.step - a.step)
  if (rows.length === 0) return <Empty title={t('checkpoints_none')}>{t('checkpoints_none_how')}</Empty>
  return (
    <Panel title={t('tab_checkpoints')} flush>
      <Table
        label={t('tab_checkpoints')}
        rows={rows}
        rowKey={(row) => `${row.attempt} ${row.name}`}
        columns={[
          { id: 'step', title: t('step'), right: true, cell: (row) => <b>{number(row.step)}</b> },
          { id: 'name', title: t('name'), cell: (row) => <span className="mono">{row.name}</span> },
          {
            id: 'state',
            title: t('col_state'),
            cell: (row) => <State kind="checkpoint_state" state={row.state ?? 'durable'} />,
          },
          { id: 'size', title: t('size'), right: true, cell: (row) => size(row.size_bytes ?? 0) },
          { id: 'digest', title: t('digest'), cell: (row) => <Digest value={row.digest} /> },
          { id: 'attempt', title: t('attempt'), right: true, cell: (row) => row.attempt ?? '–' },
          { id: 'created', title: t('col_created'), right: true, cell: (row) => <Ago us={row.created_us} /> },
          {
            id: 'get',
            title: '',
            cell: (row) => (
              <CopyButton
                terminal
                text={command('checkpoints', 'get', detail.run.ref, '--step', String(row.step))}
                label={t('copy_command')}
              />
            ),
          },
        ]}
      />
    </Panel>
  )
}
