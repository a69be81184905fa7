import { Tabs } from '@mantine/core'
import { useQueries, useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useCallback, useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useTopic } from '@/api/news'
import { columnNames, idFilter, run as runQuery, runsOf } from '@/api/queries'
import type { KeyInfo, RunView } from '@/api/types'
import { ChartTools } from '@/features/charts/ChartTools'
import { type Drawn, viewOf } from '@/features/charts/view'
import { matches, Wall } from '@/features/charts/Wall'
import css from '@/features/compare/compare.module.css'
import { Matrix } from '@/features/compare/Matrix'
import { Repeats } from '@/features/compare/Repeats'
import { RunChips } from '@/features/compare/RunChips'
import { recordOf } from '@/features/compare/record'
import { Values } from '@/features/compare/Values'
import { Views } from '@/features/views/Views'
import { flat, matrix } from '@/lib/matrix'
import { type CompareSearch, queryText, readCompare } from '@/lib/search'
import { Empty, ErrorNote, Waiting } from '@/ui/Blocks'

const MOST_KEYS = 1000
const NOTHING: string[] = []

/** 2 to 100 runs side by side: curves, values, params, and what they were made of. */
export function Compare() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/inside/compare' })
  const navigate = useNavigate({ from: '/compare' })
  const ids = useMemo(() => [...new Set((search.runs ?? '').split(',').filter(Boolean))].slice(0, 100), [search.runs])
  const names = useQuery({ ...columnNames('', '', idFilter(ids), MOST_KEYS), enabled: ids.length > 0 })
  const metrics = names.data?.metrics ?? []
  const params = names.data?.params ?? []
  const columns = useMemo(
    () => [...metrics.map(({ name }) => `metrics.${name}`), ...params.map(({ name }) => `params.${name}`)],
    [metrics, params],
  )
  const query = useQuery(runsOf(ids, names.data ? columns : NOTHING))
  const runs = query.data ?? []
  useTopic(runs.some((run) => !run.ended_us) ? 'runs' : '')
  const go = useCallback(
    (change: Partial<CompareSearch>) =>
      void navigate({ search: (was) => ({ ...was, ...change }) as CompareSearch, replace: true }),
    [navigate],
  )
  const tab = search.tab ?? 'charts'
  const matrixProps = { runs, all: search.all === '1', onAll: (all: boolean) => go({ all: all ? '1' : '' }) }
  const paramRows = useMemo(() => matrix(runs.map((run) => flat(run.params ?? {}))), [runs])
  if (ids.length === 0) return <Empty title={t('compare_none')}>{t('compare_none_how')}</Empty>
  if (query.error || names.error)
    return (
      <div style={{ padding: 20 }}>
        <ErrorNote error={query.error ?? names.error} />
      </div>
    )
  if (!query.data || !names.data) return <Waiting />
  return (
    <div className={css.page} data-ready={tab}>
      <header className={css.top}>
        <h1 className="sr-only">{t('compare')}</h1>
        <RunChips
          runs={runs}
          onRemove={(id) => go({ runs: ids.filter((one) => one !== id).join(',') })}
          onFirst={(id) => go({ runs: [id, ...ids.filter((one) => one !== id)].join(',') })}
        />
        <div style={{ display: 'flex', alignItems: 'flex-end', gap: 12 }}>
          <Tabs value={tab} onChange={(next) => go({ tab: next ?? '' })} style={{ flex: 1 }}>
            <Tabs.List aria-label={t('tabs_label')}>
              <Tabs.Tab value="charts">{t('charts')}</Tabs.Tab>
              <Tabs.Tab value="values">{t('values')}</Tabs.Tab>
              <Tabs.Tab value="repeats">{t('repeats')}</Tabs.Tab>
              <Tabs.Tab value="params">{t('tab_params')}</Tabs.Tab>
              <Tabs.Tab value="record">{t('compare_record')}</Tabs.Tab>
            </Tabs.List>
          </Tabs>
          <div style={{ paddingBottom: 6 }}>
            <Views
              page="compare"
              project=""
              query={queryText(search)}
              open=""
              onOpen={(view) =>
                view &&
                void navigate({ search: readCompare(Object.fromEntries(new URLSearchParams(view.query ?? ''))) })
              }
            />
          </div>
        </div>
      </header>
      <div className={css.body} role="tabpanel" aria-label={t(tab === 'charts' ? 'charts' : 'compare')}>
        {runs.length < ids.length && (
          <p className={css.tools}>{t('compare_missing', { count: ids.length - runs.length })}</p>
        )}
        {tab === 'charts' && <Charts runs={runs} names={metrics.map(({ name }) => name)} search={search} go={go} />}
        {tab === 'values' && <Values {...matrixProps} />}
        {tab === 'repeats' && <Repeats runs={ids} />}
        {tab === 'params' && <Matrix label={t('tab_params')} rows={paramRows} {...matrixProps} />}
        {tab === 'record' && <RecordTab {...matrixProps} />}
      </div>
    </div>
  )
}

interface ChartsProps {
  runs: RunView[]
  names: string[]
  search: CompareSearch
  go: (change: Partial<CompareSearch>) => void
}

function Charts({ runs, names, search, go }: ChartsProps) {
  const { t } = useTranslation()
  const steps = Math.max(1, ...runs.map((run) => run.progress?.steps_total || run.progress?.step || 0))
  const seconds = Math.max(
    1,
    ...runs.map((run) => ((run.ended_us || run.contact_us || 0) - (run.started_us ?? 0)) / 1e6),
  )
  const view = useMemo(() => viewOf(search, steps, seconds), [search, steps, seconds])
  const labels = runs.map((run) => `${run.id} ${run.name || run.ref}`).join('\n')
  // biome-ignore lint/correctness/useExhaustiveDependencies: names and order, not the moving parts of the runs
  const drawn = useMemo<Drawn[]>(
    () => runs.map((run, pen) => ({ id: run.id, label: run.name ? `${run.name} ${run.ref}` : run.ref, pen })),
    [labels],
  )
  const keys = useMemo(() => names.map((key): KeyInfo => ({ key })), [names])
  const found = keys.filter(({ key }) => matches(key, search.find ?? ''))
  return (
    <>
      <ChartTools view={view} search={search} go={go} attempts={2} ranks={1} keys={keys} table={false} />
      {keys.length === 0 ? (
        <Empty title={t('metrics_none')} />
      ) : (
        <div style={{ paddingBottom: 40 }}>
          <Wall runs={drawn} keys={found} view={view} pins={search.pins} go={go} />
        </div>
      )}
    </>
  )
}

interface RecordProps {
  runs: RunView[]
  all: boolean
  onAll: (all: boolean) => void
}

/** Code, environment, data and cost; asked for only when this tab is open. */
function RecordTab({ runs, all, onAll }: RecordProps) {
  const { t } = useTranslation()
  const details = useQueries({ queries: runs.map((run) => runQuery(run.id)) })
  const rows = matrix(details.map(({ data }) => (data ? recordOf(data) : {})))
  if (details.some(({ isPending }) => isPending)) return <Waiting />
  return <Matrix label={t('compare_record')} runs={runs} rows={rows} all={all} onAll={onAll} />
}
