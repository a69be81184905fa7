import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { QueueEntry } from '@/api/types'
import { sentence, word } from '@/i18n'
import { Empty, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'
import { Span } from '@/ui/Time'

/** Who waits, in which place, for what, and what would let it start. */
export function Queue({ entries }: { entries: QueueEntry[] }) {
  const { t } = useTranslation()
  if (entries.length === 0)
    return (
      <Panel title={t('queue')}>
        <Empty title={t('queue_empty')}>{t('queue_empty_how')}</Empty>
      </Panel>
    )
  return (
    <Panel title={t('queue_n', { count: entries.length })} flush>
      <Table
        label={t('queue')}
        rows={entries}
        rowKey={(entry) => `${entry.place}`}
        columns={[
          { id: 'place', title: '#', cell: (entry) => <b className="num">{entry.place}</b> },
          {
            id: 'run',
            title: t('col_run'),
            cell: ({ run }) =>
              run.id ? (
                <Link to="/runs/$run" params={{ run: run.id }}>
                  {run.name || run.ref} {run.name && <span className="dim">{run.ref}</span>}
                </Link>
              ) : (
                <span className="dim">{t('held_elsewhere')}</span>
              ),
          },
          {
            id: 'reason',
            title: t('waits_for'),
            cell: (entry) => sentence(`reason.${entry.reason.code}`, entry.reason.params),
          },
          { id: 'priority', title: t('col_priority'), cell: ({ run }) => word('priority', run.priority ?? 'normal') },
          { id: 'cards', title: t('col_cards'), right: true, cell: ({ run }) => run.cards ?? 0 },
          { id: 'owner', title: t('col_owner'), cell: ({ run }) => run.owner || '–' },
          {
            id: 'since',
            title: t('waited'),
            right: true,
            cell: ({ run }) => <Span from={run.queued_us || run.created_us} />,
          },
        ]}
      />
    </Panel>
  )
}
