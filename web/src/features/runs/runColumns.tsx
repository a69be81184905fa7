import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { RunView } from '@/api/types'
import { type Key, word } from '@/i18n'
import { fieldOf } from '@/lib/complete'
import { cardHours, duration, measure, number, plain } from '@/lib/format'
import { Marks } from '@/ui/Marks'
import { Bar, Middle, Tag } from '@/ui/Small'
import { State } from '@/ui/State'
import { Ago, Span } from '@/ui/Time'
import css from './runs.module.css'

export { fieldOf }

export interface RunColumn {
  id: string
  /** Catalogue key of the title; columns of metrics and params are called by their own name. */
  title: Key | null
  width: number
  right?: boolean
  /** Name for `order_by`; without one the column does not sort. */
  order?: string
  cell: (run: RunView) => ReactNode
}

export function share(run: RunView): number | undefined {
  const { step = 0, steps_total: total = 0 } = run.progress ?? {}
  return total > 0 ? step / total : undefined
}

function RunState({ run }: { run: RunView }) {
  return (
    <>
      <State state={run.state} share={share(run)} />
      <Marks kinds={run.marks} />
    </>
  )
}

function RunName({ run }: { run: RunView }) {
  return (
    <Link to="/runs/$run" params={{ run: run.id }} className={css.name} tabIndex={-1}>
      {run.name ? <Middle text={run.name} /> : <span className="cut">{run.ref}</span>}
      {run.name && <span className={css.ref}>{run.ref}</span>}
    </Link>
  )
}

function RunProgress({ run }: { run: RunView }) {
  const part = share(run)
  const { step = 0, steps_total: total = 0, seconds_left: left } = run.progress ?? {}
  if (part === undefined) return <span className="num dim">{step > 0 ? number(step) : '–'}</span>
  const tone =
    run.state === 'finished' ? 'green' : run.state === 'failed' ? 'red' : run.state === 'running' ? 'blue' : 'grey'
  return (
    <span className={css.progress} title={`${number(step)} / ${number(total)}`}>
      <Bar share={part} tone={tone} label={`${number(step)} / ${number(total)}`} />
      <span className="num">
        {run.state === 'running' && typeof left === 'number' ? duration(left) : `${Math.floor(part * 100)}%`}
      </span>
    </span>
  )
}

export const FIXED: RunColumn[] = [
  { id: 'state', title: 'col_state', width: 122, order: 'state', cell: (run) => <RunState run={run} /> },
  { id: 'name', title: 'col_run', width: 240, order: 'name', cell: (run) => <RunName run={run} /> },
  { id: 'progress', title: 'col_progress', width: 140, cell: (run) => <RunProgress run={run} /> },
  { id: 'owner', title: 'col_owner', width: 100, order: 'owner', cell: (run) => <span className="cut">{run.owner || '–'}</span> },
  { id: 'tags', title: 'col_tags', width: 130, cell: (run) => (run.tags ?? []).map((tag) => <Tag key={tag}>{tag}</Tag>) },
  { id: 'cards', title: 'col_cards', width: 64, right: true, order: 'cards', cell: (run) => (run.outside ? '–' : (run.cards ?? 0)) },
  { id: 'duration', title: 'col_duration', width: 96, right: true, order: 'duration', cell: (run) => <Span from={run.started_us} to={run.ended_us} /> },
  { id: 'created', title: 'col_created', width: 112, right: true, order: 'created', cell: (run) => <Ago us={run.created_us} /> },
  { id: 'card_hours', title: 'col_card_hours', width: 100, right: true, order: 'card_seconds', cell: (run) => cardHours(run.card_seconds ?? 0) },
  { id: 'attempt', title: 'col_attempts', width: 90, right: true, order: 'attempt', cell: (run) => run.attempt ?? 0 },
  { id: 'priority', title: 'col_priority', width: 90, order: 'priority', cell: (run) => word('priority', run.priority ?? 'normal') },
  { id: 'cause', title: 'col_cause', width: 170, order: 'cause', cell: (run) => <span className="cut">{run.cause ? word('cause', run.cause) : '–'}</span> },
  { id: 'started', title: 'col_started', width: 112, right: true, order: 'started', cell: (run) => <Ago us={run.started_us} /> },
  { id: 'ended', title: 'col_ended', width: 112, right: true, order: 'ended', cell: (run) => <Ago us={run.ended_us} /> },
  { id: 'step', title: 'col_step', width: 90, right: true, order: 'step', cell: (run) => number(run.progress?.step ?? null) },
  { id: 'description', title: 'col_description', width: 200, order: 'description', cell: (run) => <span className="cut">{run.description || '–'}</span> },
  { id: 'project', title: 'col_project', width: 110, cell: (run) => <span className="cut">{run.project}</span> },
] // biome-ignore format: one column a line

export const USUAL = ['state', 'name', 'progress', 'metrics.loss', 'owner', 'tags', 'cards', 'duration', 'created']

/** `metrics.loss` and `params.lr` are columns by their own name; anything unknown is left out. */
export function columnOf(id: string): RunColumn | undefined {
  const fixed = FIXED.find((column) => column.id === id)
  if (fixed) return fixed
  if (id.startsWith('metrics.')) {
    const key = id.slice(8)
    return {
      id,
      title: null,
      width: 100,
      right: true,
      order: fieldOf('metrics', key),
      cell: (run) => measure(key, run.metrics?.[key] ?? run.metrics?.[id]),
    }
  }
  if (id.startsWith('params.')) {
    const key = id.slice(7)
    return {
      id,
      title: null,
      width: 100,
      right: true,
      order: fieldOf('params', key),
      cell: (run) => <Param value={run.params?.[key] ?? run.params?.[id]} />,
    }
  }
  return undefined
}

function Param({ value }: { value: unknown }) {
  return value === undefined ? <span className="dim">–</span> : <span className="cut">{plain(value)}</span>
}

/** Names that the server must add to its rows. */
export function askedColumns(ids: string[]): string[] {
  return ids.filter((id) => id.startsWith('metrics.') || id.startsWith('params.'))
}
