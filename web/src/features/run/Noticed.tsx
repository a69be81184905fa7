import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { steps as stepsQuery } from '@/api/queries'
import type { Anomaly, RunDetail, SlowStep } from '@/api/types'
import { word } from '@/i18n'
import { duration, measure, number } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Marks } from '@/ui/Marks'
import { Table } from '@/ui/Table'
import { Ago } from '@/ui/Time'
import css from './run.module.css'

/** What was noticed about the curves and the steps of a run, the open things first. */
export function Noticed({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const found = [...(detail.anomalies ?? [])].sort((a, b) => Number(b.open ?? true) - Number(a.open ?? true))
  if (found.length === 0) return null
  return (
    <Panel title={t('noticed_n', { count: found.length })} flush>
      <Table
        label={t('noticed_n', { count: found.length })}
        rows={found}
        rowKey={(one) => `${one.kind} ${one.key} ${one.number} ${one.opened_us}`}
        columns={[
          {
            id: 'kind',
            title: t('kind'),
            cell: (one) =>
              (one.open ?? true) ? (
                <Marks kinds={[one.kind]} words />
              ) : (
                <span className="dim">{word('anomaly', one.kind)}</span>
              ),
          },
          { id: 'key', title: t('metric'), cell: (one) => <What one={one} /> },
          { id: 'steps', title: t('steps'), right: true, cell: (one) => steps(one) },
          { id: 'value', title: t('value'), right: true, cell: (one) => <Value one={one} /> },
          { id: 'since', title: t('since'), right: true, cell: (one) => <Ago us={one.opened_us} /> },
          {
            id: 'over',
            title: t('over'),
            right: true,
            cell: (one) => ((one.open ?? true) ? t('still') : <Ago us={one.closed_us} />),
          },
        ]}
      />
    </Panel>
  )
}

function What({ one }: { one: Anomaly }) {
  const { t } = useTranslation()
  if (one.kind === 'stalled') return one.waits_for ? t('waits_for_what', { what: one.waits_for }) : '–'
  return (
    <span className="mono">
      {one.key}
      {one.rank ? ` · ${t('rank_n', { n: one.rank })}` : ''}
    </span>
  )
}

function steps(one: Anomaly): string {
  const [first, last] = [one.first_step ?? 0, one.last_step ?? 0]
  return first === last ? number(first) : `${number(first)} – ${number(last)}`
}

function Value({ one }: { one: Anomaly }) {
  const { t } = useTranslation()
  if (one.kind === 'stalled')
    return typeof one.expected === 'number' ? t('usually', { what: duration(one.expected) }) : '–'
  return (
    <>
      {measure(one.key ?? '', one.worst ?? one.value)}
      {typeof one.expected === 'number' && (
        <span className="dim"> {t('expected', { what: measure(one.key ?? '', one.expected) })}</span>
      )}
    </>
  )
}

/** How long the steps take and for what; the slow ones with the phase and the rank that held them up. */
export function Steps({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { data } = useQuery(stepsQuery(detail.run.id))
  if (!data?.steps || typeof data.median_s !== 'number') return null
  const slow = data.slow ?? []
  const split = Object.entries(data.split ?? {})
  const whole = split.reduce((sum, [, seconds]) => sum + seconds, 0)
  return (
    <Panel title={t('step_times')} flush={slow.length > 0}>
      <div className={slow.length > 0 ? css.stepFacts : undefined}>
        <Facts
          rows={[
            [t('step_median'), duration(data.median_s)],
            ...split.map(([phase, seconds]): [string, string] => [
              phaseName(phase),
              `${duration(seconds)} · ${Math.round((seconds / Math.max(whole, 1e-9)) * 100)}%`,
            ]),
          ]}
        />
      </div>
      {slow.length > 0 && (
        <Table
          label={t('slow_steps')}
          rows={slow.slice(0, 12)}
          rowKey={(one) => `${one.attempt} ${one.step}`}
          columns={[
            { id: 'step', title: t('slow_steps'), cell: (one) => number(one.step) },
            { id: 'took', title: t('col_duration'), right: true, cell: (one) => duration(one.seconds) },
            {
              id: 'times',
              title: t('times_median'),
              right: true,
              cell: (one) => `${number(one.seconds / Math.max(one.median_s, 1e-9), 2)}×`,
            },
            { id: 'cause', title: t('col_cause'), cell: (one) => <Cause one={one} /> },
          ]}
        />
      )}
    </Panel>
  )
}

function Cause({ one }: { one: SlowStep }) {
  const { t } = useTranslation()
  const parts = [
    one.cause ? phaseName(one.cause) : '',
    typeof one.straggler === 'number' ? t('rank_n', { n: one.straggler }) : '',
  ]
  return <>{parts.filter(Boolean).join(' · ') || '–'}</>
}

function phaseName(phase: string): string {
  return word('phase', phase)
}
