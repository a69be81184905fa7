import { useQuery } from '@tanstack/react-query'
import { ArrowDown, ArrowUp } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { runGroups } from '@/api/queries'
import type { GroupSpread, RunGroup } from '@/api/types'
import { locale, word } from '@/i18n'
import { count, measure, number, plain } from '@/lib/format'
import { tone } from '@/lib/states'
import { Empty, ErrorNote, Waiting } from '@/ui/Blocks'
import { Tag } from '@/ui/Small'
import { State } from '@/ui/State'
import { Ago } from '@/ui/Time'
import { fieldOf } from './runColumns'
import css from './runs.module.css'

interface Props {
  by: string[]
  metrics: string[]
  filter: string
  project: string
  onOpen: (filter: string) => void
}

/** Groups of runs with mean and spread of the shown metrics; a group opens as the runs that are in it. */
export function Groups({ by, metrics, filter, project, onOpen }: Props) {
  const { t } = useTranslation()
  const fields = useMemo(() => metrics.map((key) => fieldOf('metrics', key)), [metrics])
  const query = useQuery(runGroups({ by, metrics: fields, filter, project }))
  const [sort, setSort] = useState({ at: '', up: true })
  const groups = useMemo(() => sorted(query.data?.groups ?? [], sort), [query.data, sort])
  if (query.error)
    return (
      <div style={{ padding: 20 }}>
        <ErrorNote error={query.error} />
      </div>
    )
  if (!query.data)
    return (
      <div className={css.grid}>
        <Waiting />
      </div>
    )
  if (groups.length === 0) return <Empty title={t('runs_none_match')} />
  const press = (at: string) => setSort((was) => ({ at, up: was.at === at ? !was.up : true }))
  const total = query.data.total ?? groups.length
  return (
    <div className={css.grid} tabIndex={0} role="region" aria-label={t('groups')}>
      <table className={css.groups}>
        <thead>
          <tr>
            {by.map((field, i) => (
              <Th key={field} title={titleOf(field)} id={`value ${i}`} sort={sort} onSort={press} />
            ))}
            <Th title={t('nav_runs')} id="runs" sort={sort} onSort={press} right />
            <th scope="col">{t('states')}</th>
            {metrics.map((key, i) => (
              <Th key={key} title={key} id={`metric ${fields[i]}`} sort={sort} onSort={press} right />
            ))}
            <Th title={t('newest')} id="created" sort={sort} onSort={press} right />
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.filter}>
              {group.values.map((value, i) => (
                <td key={by[i]}>
                  {i === 0 ? (
                    <button
                      type="button"
                      className={css.groupOpen}
                      title={t('group_open')}
                      onClick={() => onOpen(group.filter ?? '')}
                    >
                      <Value field={by[i]!} value={value} />
                    </button>
                  ) : (
                    <Value field={by[i]!} value={value} />
                  )}
                </td>
              ))}
              <td className={css.rightCell}>{count(group.runs ?? 0, locale())}</td>
              <td>
                <States states={group.states ?? {}} runs={group.runs ?? 1} />
              </td>
              {metrics.map((key, i) => (
                <td key={key} className={css.rightCell}>
                  <Measured name={key} spread={group.metrics?.[fields[i]!]} />
                </td>
              ))}
              <td className={css.rightCell}>
                <Ago us={group.created_us} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className={css.groupFoot}>
        {total > groups.length ? t('shown_of', { shown: groups.length, total }) : t('groups_n', { count: total })}
      </div>
    </div>
  )
}

interface ThProps {
  title: string
  id: string
  sort: { at: string; up: boolean }
  onSort: (id: string) => void
  right?: boolean
}

function Th({ title, id, sort, onSort, right = false }: ThProps) {
  const on = sort.at === id
  const Icon = sort.up ? ArrowUp : ArrowDown
  return (
    <th scope="col" aria-sort={on ? (sort.up ? 'ascending' : 'descending') : 'none'}>
      <button type="button" className={`${css.sort} ${right ? css.right : ''}`} data-on={on} onClick={() => onSort(id)}>
        <span className="cut">{title}</span>
        {on && <Icon size={12} aria-hidden />}
      </button>
    </th>
  )
}

function titleOf(field: string): string {
  return field.replace(/^params\./, '').replace(/^'(.*)'$/, '$1')
}

function Value({ field, value }: { field: string; value: unknown }) {
  const { t } = useTranslation()
  if (value === null || value === '') return <span className="dim">{t('none')}</span>
  if (field === 'tags') return <Tag>{String(value)}</Tag>
  if (field === 'state') return <State state={String(value)} />
  if (field === 'cause') return <span>{word('cause', String(value))}</span>
  return <span className="num">{plain(value)}</span>
}

/** How the runs of a group stand, as a bar of their states. */
function States({ states, runs }: { states: Record<string, number>; runs: number }) {
  const parts = Object.entries(states).sort((a, b) => b[1] - a[1])
  const label = parts.map(([state, n]) => `${n} ${word('state', state)}`).join(', ')
  return (
    <span className={css.states} role="img" aria-label={label} title={label}>
      {parts.map(([state, n]) => (
        <i key={state} style={{ width: `${(n / runs) * 100}%`, background: `var(--tone-${tone(state)})` }} />
      ))}
    </span>
  )
}

function Measured({ name, spread }: { name: string; spread: GroupSpread | undefined }) {
  const { t } = useTranslation()
  if (!spread?.count) return <span className="dim">–</span>
  const title = t('spread_title', {
    count: spread.count,
    min: measure(name, spread.min),
    max: measure(name, spread.max),
  })
  return (
    <span title={title}>
      {measure(name, spread.mean)}
      {spread.std !== null && spread.std !== undefined && <span className="dim"> ± {number(spread.std, 2)}</span>}
    </span>
  )
}

function sorted(groups: RunGroup[], { at, up }: { at: string; up: boolean }): RunGroup[] {
  if (!at) return groups
  const key = (group: RunGroup): unknown => {
    if (at === 'runs') return group.runs
    if (at === 'created') return group.created_us
    if (at.startsWith('metric ')) return group.metrics?.[at.slice(7)]?.mean
    return group.values[Number(at.slice(6))]
  }
  return [...groups].sort((a, b) => {
    const [one, two] = [key(a), key(b)]
    if (one === undefined || one === null) return two === undefined || two === null ? 0 : 1
    if (two === undefined || two === null) return -1
    const order =
      typeof one === 'number' && typeof two === 'number' ? one - two : String(one).localeCompare(String(two))
    return up ? order : -order
  })
}
