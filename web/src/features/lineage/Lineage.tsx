import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { lineage as lineageQuery } from '@/api/queries'
import type { LineageEdge, LineageView, RunDetail } from '@/api/types'
import { word } from '@/i18n'
import { command } from '@/lib/command'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { Digest } from '@/ui/Small'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'
import { End, labelOf } from './End'
import { Graph } from './Graph'

export function Lineage({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const query = useQuery(lineageQuery(detail.run.id))
  return (
    <Async query={query}>
      {(view) =>
        (view.edges ?? []).length === 0 ? (
          <Empty title={t('lineage_none')}>{t('lineage_none_how')}</Empty>
        ) : (
          <div style={{ display: 'flex', flexDirection: 'column', gap: 16 }}>
            <Panel
              title={t('tab_lineage')}
              actions={<CopyButton terminal text={command('lineage', detail.run.ref)} label={t('copy_command')} />}
              flush
            >
              <Graph view={view} />
            </Panel>
            <List view={view} />
          </div>
        )
      }
    </Async>
  )
}

/** The same as words, for reading and for screen readers. */
function List({ view }: { view: LineageView }) {
  const { t } = useTranslation()
  return (
    <Panel title={t('lineage_list')} flush>
      <Table
        label={t('lineage_list')}
        rows={view.edges ?? []}
        rowKey={(edge) => `${edge.source} ${edge.kind} ${edge.target}`}
        columns={[
          {
            id: 'source',
            title: t('lineage_source'),
            cell: (edge) => <End id={edge.source} label={labelOf(view, edge.source)} />,
          },
          { id: 'kind', title: t('lineage_kind'), cell: (edge) => word('lineage', edge.kind) },
          {
            id: 'target',
            title: t('lineage_target'),
            cell: (edge) => <End id={edge.target} label={labelOf(view, edge.target)} />,
          },
          {
            id: 'digest',
            title: t('digest'),
            cell: (edge) => <Digest value={text(view, otherOf(view, edge), 'digest')} />,
          },
          {
            id: 'created',
            title: t('col_created'),
            right: true,
            cell: (edge) => <Ago us={Number(view.nodes?.[otherOf(view, edge)]?.created_us ?? 0)} />,
          },
        ]}
      />
    </Panel>
  )
}

/** The end of an edge that is not the run of this page. */
function otherOf(view: LineageView, edge: LineageEdge): string {
  return edge.source === view.root ? edge.target : edge.source
}

function text(view: LineageView, id: string, name: string): string {
  const value = view.nodes?.[id]?.[name]
  return typeof value === 'string' ? value : ''
}
