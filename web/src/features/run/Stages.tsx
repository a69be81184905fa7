import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { StageView } from '@/api/types'
import { sentence } from '@/i18n'
import { Panel } from '@/ui/Blocks'
import { Digest } from '@/ui/Small'
import { State } from '@/ui/State'
import { Table } from '@/ui/Table'

export function Stages({ stages }: { stages: StageView[] }) {
  const { t } = useTranslation()
  if (stages.length === 0) return null
  return (
    <Panel title={t('stages')} flush>
      <Table
        label={t('stages')}
        rows={stages}
        rowKey={(stage) => stage.name}
        columns={[
          { id: 'name', title: t('stage'), cell: (stage) => <Name stage={stage} /> },
          {
            id: 'state',
            title: t('col_state'),
            cell: (stage) => <State kind="stage_state" state={stage.state ?? 'waiting'} />,
          },
          {
            id: 'products',
            title: t('products'),
            cell: (stage) =>
              Object.entries(stage.products ?? {}).map(([name, digest]) => (
                <span key={name} style={{ display: 'inline-flex', gap: 6, marginRight: 12, alignItems: 'center' }}>
                  {name} <Digest value={digest} />
                </span>
              )),
          },
          {
            id: 'why',
            title: t('col_why'),
            cell: (stage) => {
              const why = stage.reason ? sentence(`reason.${stage.reason.code}`, stage.reason.params) : '–'
              return stage.from_run ? (
                <Link to="/runs/$run" params={{ run: stage.from_run }}>
                  {why}
                </Link>
              ) : (
                why
              )
            },
          },
          { id: 'attempt', title: t('attempt'), right: true, cell: (stage) => stage.attempt || '–' },
        ]}
      />
    </Panel>
  )
}

/** A stage that is a run of its own leads to it. */
function Name({ stage }: { stage: StageView }) {
  const name = <b style={{ fontWeight: 500 }}>{stage.name}</b>
  if (!stage.run_id) return name
  return (
    <>
      <Link to="/runs/$run" params={{ run: stage.run_id }}>
        {name}
      </Link>{' '}
      <span className="dim">{stage.run}</span>
    </>
  )
}
