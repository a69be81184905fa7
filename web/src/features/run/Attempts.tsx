import type { CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import type { AttemptView, RunDetail } from '@/api/types'
import { sentence, word } from '@/i18n'
import { number } from '@/lib/format'
import { tone } from '@/lib/states'
import { Panel } from '@/ui/Blocks'
import { State } from '@/ui/State'
import { Table } from '@/ui/Table'
import { Span, useNow } from '@/ui/Time'
import css from './run.module.css'

/** Every try at the run on one time line: where it ran, how it ended, what was lost. */
export function Attempts({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const attempts = detail.attempts ?? []
  const open = attempts.some((attempt) => !attempt.ended_us)
  const now = useNow(open) * 1000
  if (attempts.length === 0) return null
  const from = detail.run.created_us ?? attempts[0]!.created_us ?? 0
  const to = open ? now : Math.max(...attempts.map((attempt) => attempt.ended_us ?? 0), detail.run.ended_us ?? 0)
  return (
    <Panel title={t('attempts')} flush>
      <Table
        label={t('attempts')}
        rows={[...attempts].reverse()}
        rowKey={(attempt) => attempt.id}
        columns={[
          { id: 'number', title: '#', cell: (attempt) => <b className="num">{attempt.number}</b> },
          {
            id: 'state',
            title: t('col_state'),
            cell: (attempt) => <End attempt={attempt} />,
          },
          { id: 'line', title: t('time_line'), cell: (attempt) => <Line attempt={attempt} from={from} to={to} /> },
          {
            id: 'duration',
            title: t('col_duration'),
            right: true,
            cell: (attempt) => <Span from={attempt.started_us || attempt.created_us} to={attempt.ended_us} />,
          },
          { id: 'where', title: t('placement'), cell: (attempt) => <Where attempt={attempt} /> },
          {
            id: 'resumed',
            title: t('resumed_from'),
            right: true,
            cell: (attempt) =>
              typeof attempt.resumed_from_step === 'number'
                ? t('step_n', { step: number(attempt.resumed_from_step) })
                : '–',
          },
          { id: 'lost', title: t('lost_steps'), right: true, cell: (attempt) => attempt.lost_steps || '–' },
        ]}
      />
    </Panel>
  )
}

function End({ attempt }: { attempt: AttemptView }) {
  const reason = attempt.reason ? sentence(`reason.${attempt.reason.code}`, attempt.reason.params) : ''
  if (!attempt.cause) return <State kind="attempt_state" state={attempt.state} />
  return (
    <span title={reason} style={{ color: `var(--tone-${endTone(attempt)})`, fontWeight: 500 }}>
      {attempt.stage && <span className="dim">{attempt.stage}: </span>}
      {word('cause', attempt.cause)}
    </span>
  )
}

function endTone(attempt: AttemptView): string {
  if (!attempt.cause) return tone(attempt.state)
  if (attempt.cause === 'done') return 'green'
  return ['stopped', 'paused', 'preempted'].includes(attempt.cause) ? 'violet' : 'red'
}

function Line({ attempt, from, to }: { attempt: AttemptView; from: number; to: number }) {
  const span = Math.max(1, to - from)
  const begin = attempt.started_us || attempt.created_us || from
  const end = attempt.ended_us || to
  const style = {
    left: `${((begin - from) / span) * 100}%`,
    width: `${((end - begin) / span) * 100}%`,
    '--tone': `var(--tone-${endTone(attempt)})`,
  } as CSSProperties
  return (
    <div className={css.gantt} aria-hidden>
      <i style={style} />
    </div>
  )
}

function Where({ attempt }: { attempt: AttemptView }) {
  const { t } = useTranslation()
  const places = (attempt.placement ?? []) as { node?: string; cards?: number[] }[]
  if (places.length === 0) return <span className="dim">–</span>
  return (
    <span style={{ whiteSpace: 'nowrap' }}>
      {places
        .map(
          (place) =>
            `${place.node ?? '?'}${place.cards?.length ? ` · ${t('cards_list', { count: place.cards.length, list: place.cards.join(', ') })}` : ''}`,
        )
        .join('; ')}
    </span>
  )
}
