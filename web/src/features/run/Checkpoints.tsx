import { useTranslation } from 'react-i18next'
import type { CheckpointView, RunDetail } from '@/api/types'
import { command } from '@/lib/command'
import { number, size } from '@/lib/format'
import { Empty, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { Digest } from '@/ui/Small'
import { State } from '@/ui/State'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'
import css from './run.module.css'

export function Checkpoints({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const order = (rows: CheckpointView[] | undefined) => [...(rows ?? [])].sort((a, b) => b.step - a.step)
  const kept = order(detail.checkpoints)
  const dropped = order(detail.checkpoints_dropped)
  if (kept.length + dropped.length === 0)
    return <Empty title={t('checkpoints_none')}>{t('checkpoints_none_how')}</Empty>
  return (
    <div className={css.stack}>
      {kept.length > 0 && <List title={t('tab_checkpoints')} rows={kept} run={detail.run.ref} />}
      {dropped.length > 0 && <List title={t('checkpoints_dropped')} rows={dropped} run="" />}
    </div>
  )
}

/** `run`: whose files can be fetched; empty where they are gone and only the record is left. */
function List({ title, rows, run }: { title: string; rows: CheckpointView[]; run: string }) {
  const { t } = useTranslation()
  return (
    <Panel title={title} flush>
      <Table
        label={title}
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
            cell: (row) =>
              run && (
                <CopyButton
                  terminal
                  text={command('checkpoints', 'get', run, '--step', String(row.step))}
                  label={t('copy_command')}
                />
              ),
          },
        ]}
      />
    </Panel>
  )
}
