import { useInfiniteQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { runs as runsQuery } from '@/api/queries'
import type { RunView, SavedView } from '@/api/types'
import { Columns } from '@/features/runs/Columns'
import { FilterBox } from '@/features/runs/FilterBox'
import { GroupPick } from '@/features/runs/GroupPick'
import { Quick } from '@/features/runs/Quick'
import { RunsGrid } from '@/features/runs/RunsGrid'
import { askedColumns, columnOf, type RunColumn, USUAL } from '@/features/runs/runColumns'
import css from '@/features/runs/runs.module.css'
import { Views } from '@/features/views/Views'
import { locale } from '@/i18n'
import { count } from '@/lib/format'
import { useProject } from '@/lib/project'
import { queryText, type RunsSearch, readRuns } from '@/lib/search'
import { Empty, ErrorNote, Waiting } from '@/ui/Blocks'
import { useKeys } from '@/ui/keyboard'

// Shown on demand only: the first page stays light.
const Bulk = lazy(() => import('@/features/runs/Bulk').then((one) => ({ default: one.Bulk })))
const Groups = lazy(() => import('@/features/runs/Groups').then((one) => ({ default: one.Groups })))

const STORE = 'trackbed.columns'

export function Runs() {
  const { t } = useTranslation()
  const search = useSearch({ from: '/inside/runs' })
  const navigate = useNavigate({ from: '/runs' })
  const [project] = useProject()
  const [chosen, setChosen] = useState<Set<string>>(new Set())
  const [active, setActive] = useState(-1)
  const box = useRef<HTMLInputElement>(null)

  const ids = (search.cols ?? localStorage.getItem(STORE) ?? USUAL.join(',')).split(',')
  const key = ids.join(',')
  // biome-ignore lint/correctness/useExhaustiveDependencies: `key` is the list
  const columns = useMemo(() => ids.map(columnOf).filter((one): one is RunColumn => one !== undefined), [key])
  const by = useMemo(() => (search.group ?? '').split(',').filter(Boolean), [search.group])
  const order = search.sort ?? ''
  const descending = search.up !== '1'
  const query = useInfiniteQuery(
    runsQuery({ filter: search.q ?? '', order, descending, project, columns: askedColumns(ids) }),
  )
  // A filter that is wrong shows its fault; the rows of the last right one stay.
  const last = useRef(query.data)
  if (query.data) last.current = query.data
  const data = last.current
  const runs = useMemo(() => data?.pages.flatMap((page) => page.runs) ?? [], [data])
  const total = data?.pages[0]?.total ?? runs.length

  const go = useCallback(
    (change: Partial<RunsSearch>) =>
      void navigate({ search: (was) => ({ ...was, ...change }) as RunsSearch, replace: true }),
    [navigate],
  )
  const setFilter = useCallback((q: string) => go({ q }), [go])
  const openView = (view: SavedView | null) => {
    const read = view ? readRuns(Object.fromEntries(new URLSearchParams(view.query))) : search
    void navigate({ search: { ...read, view: view?.id ?? '' } as RunsSearch })
  }
  const known = useMemo(() => knownOf(runs), [runs])
  const setColumns = (list: string[]) => {
    localStorage.setItem(STORE, list.join(','))
    go({ cols: list.join(',') })
  }
  const sort = (name: string) => {
    if (name !== order) go({ sort: name, up: '' })
    else if (descending) go({ up: '1' })
    else go({ sort: '', up: '' })
  }
  const choose = useCallback((some: string[], on: boolean) => {
    setChosen((was) => {
      const now = new Set(was)
      for (const id of some) on ? now.add(id) : now.delete(id)
      return now
    })
  }, [])
  const more = useCallback(() => {
    if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage()
  }, [query])

  useKeys(
    useMemo(
      () => ({
        '/': () => box.current?.focus(),
        j: () => setActive((at) => Math.min(at + 1, runs.length - 1)),
        k: () => setActive((at) => Math.max(at - 1, 0)),
        x: () => runs[active] && choose([runs[active].id], !chosen.has(runs[active].id)),
        Enter: () => runs[active] && void navigate({ to: '/runs/$run', params: { run: runs[active].id } }),
        Escape: () => setChosen(new Set()),
      }),
      [runs, active, chosen, choose, navigate],
    ),
  )

  const filterError = query.error && search.q ? query.error : null
  return (
    <div className={css.page} data-ready={query.isFetched || undefined}>
      <h1 className="sr-only">{t('nav_runs')}</h1>
      <div className={css.tools}>
        <FilterBox
          value={search.q ?? ''}
          error={filterError}
          onChange={setFilter}
          box={box}
          project={project}
          known={known}
        />
        <Quick filter={search.q ?? ''} onChange={setFilter} />
        <GroupPick chosen={by} onChange={(fields) => go({ group: fields.join(',') })} project={project} />
        <Columns chosen={ids} onChange={setColumns} project={project} />
        <Views
          page="runs"
          project={project}
          query={queryText({ ...search, cols: key, view: '' })}
          open={search.view ?? ''}
          onOpen={openView}
        />
      </div>
      {query.error && !filterError ? (
        <div style={{ padding: 20 }}>
          <ErrorNote error={query.error} />
        </div>
      ) : null}
      {query.isPending && <Waiting />}
      {query.data && runs.length === 0 && <Nothing filtered={Boolean(search.q)} onClear={() => setFilter('')} />}
      {by.length > 0 && runs.length > 0 && (
        <Suspense fallback={<Waiting />}>
          <Groups
            by={by}
            metrics={ids.filter((id) => id.startsWith('metrics.')).map((id) => id.slice(8))}
            filter={search.q ?? ''}
            project={project}
            onOpen={(filter) => go({ group: '', q: both(search.q ?? '', filter) })}
          />
        </Suspense>
      )}
      {by.length === 0 && runs.length > 0 && (
        <RunsGrid
          runs={runs}
          total={total}
          columns={columns}
          order={order}
          descending={descending}
          onSort={sort}
          chosen={chosen}
          onChoose={choose}
          active={active}
          onEnd={more}
        />
      )}
      <div className={css.foot}>
        <span className="num">{t('runs_total', { count: total, shown: count(total, locale()) })}</span>
      </div>
      {chosen.size > 0 && (
        <Suspense>
          <Bulk runs={runs.filter((run) => chosen.has(run.id))} onClear={() => setChosen(new Set())} />
        </Suspense>
      )}
    </div>
  )
}

/** Texts that the rows carry, for completion. */
function knownOf(runs: RunView[]): Record<string, string[]> {
  const of = (text: (run: RunView) => string | undefined) => [...new Set(runs.map(text).filter(Boolean))] as string[]
  return {
    owner: of((run) => run.owner),
    project: of((run) => run.project),
    space: of((run) => run.space),
    cause: of((run) => run.cause),
  }
}

function both(one: string, two: string): string {
  return one.trim() ? `(${one.trim()}) and ${two}` : two
}

function Nothing({ filtered, onClear }: { filtered: boolean; onClear: () => void }) {
  const { t } = useTranslation()
  if (filtered)
    return (
      <Empty title={t('runs_none_match')}>
        <button type="button" onClick={onClear} style={{ all: 'unset', cursor: 'pointer', color: 'var(--link)' }}>
          {t('filter_clear')}
        </button>
      </Empty>
    )
  return (
    <Empty title={t('runs_none')} command="trackbed submit trackbed.yaml --follow">
      {t('runs_none_how')}
    </Empty>
  )
}
