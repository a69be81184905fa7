import { useQuery } from '@tanstack/react-query'
import type { CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import { comparison as comparisonQuery } from '@/api/queries'
import type { Comparison, Spread } from '@/api/types'
import { word } from '@/i18n'
import { measure, number } from '@/lib/format'
import { Async, Empty, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'

const TONES: Record<string, string> = { better: 'green', worse: 'red' }

/** Mean and spread over runs that differ only in their seed, and whether a group is better than the first by more than that. */
export function Repeats({ runs }: { runs: string[] }) {
  const { t } = useTranslation()
  const query = useQuery(comparisonQuery(runs))
  if (runs.length < 2) return <Empty title={t('no_differences')} />
  return <Async query={query}>{(found) => <Judged found={found} />}</Async>
}

export function Judged({ found }: { found: Comparison }) {
  const { t } = useTranslation()
  const groups = [...new Set(found.runs.map((run) => run.group ?? 0))].sort((a, b) => a - b)
  const metrics = found.metrics ?? []
  const matched = found.matched ?? []
  return (
    <div style={{ display: 'grid', gap: 16, padding: '12px 20px 20px' }}>
      <p className="dim" style={{ margin: 0, fontSize: 13 }}>
        {t('repeats_note')}{' '}
        {matched.length > 0
          ? t('repeats_matched', { what: matched.map((one) => word('condition', one)).join(', ') })
          : t('repeats_differ')}
      </p>
      <Panel title={t('repeats')} flush>
        <Table
          label={t('repeats')}
          rows={metrics}
          rowKey={(metric) => metric.key}
          columns={[
            {
              id: 'key',
              title: t('metric'),
              cell: (metric) => (
                <span className="mono">
                  {metric.key} {metric.goal && <span className="dim">{metric.goal}</span>}
                </span>
              ),
            },
            ...groups.map((group) => ({
              id: `g${group}`,
              title: <GroupHead found={found} group={group} />,
              cell: (metric: (typeof metrics)[number]) => (
                <Cell name={metric.key} spread={metric.groups?.find((one) => one.group === group)} />
              ),
            })),
          ]}
        />
      </Panel>
      {found.metrics_left_out ? (
        <p className="dim" style={{ margin: 0 }}>
          {t('repeats_left', { count: found.metrics_left_out })}
        </p>
      ) : null}
    </div>
  )
}

function GroupHead({ found, group }: { found: Comparison; group: number }) {
  const { t } = useTranslation()
  const refs = found.runs.filter((run) => (run.group ?? 0) === group).map((run) => run.ref)
  return (
    <>
      {t('repeats_group', { n: group + 1 })}
      <div className="dim" style={{ fontWeight: 400 }} title={refs.join(', ')}>
        {refs.length > 3 ? `${refs.slice(0, 3).join(', ')}…` : refs.join(', ')}
      </div>
    </>
  )
}

function Cell({ name, spread }: { name: string; spread: Spread | undefined }) {
  if (!spread || typeof spread.mean !== 'number') return <span className="dim">–</span>
  const tone = TONES[spread.verdict ?? '']
  return (
    <span className="num" style={{ whiteSpace: 'nowrap' }}>
      {measure(name, spread.mean)}
      {typeof spread.deviation === 'number' && <span className="dim"> ± {number(spread.deviation, 2)}</span>}
      <span className="dim"> n={spread.n}</span>
      {spread.verdict && (
        <b style={{ marginLeft: 8, fontWeight: 500, color: tone && `var(--tone-${tone})` } as CSSProperties}>
          {word('verdict', spread.verdict)}
        </b>
      )}
    </span>
  )
}
