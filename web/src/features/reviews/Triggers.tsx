import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { deliveries as deliveriesQuery, triggers as triggersQuery } from '@/api/queries'
import type { DeliveryView, TriggerView } from '@/api/types'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Copyable } from '@/ui/Copy'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'

const TONES: Record<DeliveryView['state'], string> = {
  done: 'green',
  failed: 'red',
  skipped: 'grey',
  started: 'blue',
  waiting: 'amber',
}

/** What starts pipelines by itself, and what it started. */
export function Triggers() {
  const { t } = useTranslation()
  const query = useQuery(triggersQuery)
  return (
    <Panel title={t('triggers')} flush>
      <Async query={query}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t('triggers_none')} command="trackbed trigger --help" />
          ) : (
            <Table
              label={t('triggers')}
              rows={list}
              rowKey={(trigger) => trigger.id}
              columns={[
                { id: 'name', title: t('name'), cell: (trigger) => trigger.name },
                { id: 'kind', title: t('kind'), cell: (trigger) => trigger.kind },
                { id: 'on', title: t('trigger_on'), cell: (trigger) => on(trigger) },
                {
                  id: 'hook',
                  title: t('address'),
                  cell: (trigger) =>
                    trigger.hook_url && (
                      <span className="mono">
                        <Copyable text={trigger.hook_url}>{trigger.hook_url}</Copyable>
                      </span>
                    ),
                },
                { id: 'owner', title: t('col_owner'), cell: (trigger) => trigger.owner },
                {
                  id: 'created',
                  title: t('col_created'),
                  right: true,
                  cell: (trigger) => <Ago us={trigger.created_us} />,
                },
              ]}
            />
          )
        }
      </Async>
    </Panel>
  )
}

function on(trigger: TriggerView): string {
  return trigger.dataset || [trigger.remote, trigger.branch || '*'].filter(Boolean).join(' ')
}

export function Deliveries() {
  const { t } = useTranslation()
  const { data = [], error } = useQuery(deliveriesQuery)
  if (data.length === 0 && !error) return null
  return (
    <Panel title={t('deliveries')} flush>
      <Async query={{ data, error, isPending: false }}>
        {(list) => (
          <Table
            label={t('deliveries')}
            rows={list}
            rowKey={(one) => one.id}
            columns={[
              { id: 'trigger', title: t('name'), cell: (one) => one.trigger },
              {
                id: 'state',
                title: t('col_state'),
                cell: (one) => (
                  <b style={{ fontWeight: 500, color: `var(--tone-${TONES[one.state]})` }}>
                    {t(`delivery_${one.state}`)}
                  </b>
                ),
              },
              {
                id: 'of',
                title: t('trigger_on'),
                cell: (one) => (
                  <span className="mono">
                    {one.dataset || `${one.branch ?? ''} ${(one.commit ?? '').slice(0, 10)}`}
                  </span>
                ),
              },
              { id: 'by', title: t('review_author'), cell: (one) => one.by },
              {
                id: 'run',
                title: t('run_word'),
                cell: (one) =>
                  one.run_id && (
                    <Link to="/runs/$run" params={{ run: one.run_id }}>
                      {one.run || one.run_id}
                    </Link>
                  ),
              },
              { id: 'result', title: t('delivery_result'), cell: (one) => one.result },
              { id: 'when', title: t('col_when'), right: true, cell: (one) => <Ago us={one.created_us} /> },
            ]}
          />
        )}
      </Async>
    </Panel>
  )
}
