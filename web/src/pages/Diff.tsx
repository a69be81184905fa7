import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { ArrowLeftRight, ChartSpline } from 'lucide-react'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { columnNames, idFilter, run as runQuery, runsOf } from '@/api/queries'
import type { RunDetail, RunView } from '@/api/types'
import { CodeText } from '@/features/code/CodeText'
import { CodeDiff } from '@/features/compare/CodeDiff'
import css from '@/features/compare/compare.module.css'
import { Matrix } from '@/features/compare/Matrix'
import { packagesOf, recordOf } from '@/features/compare/record'
import { Values } from '@/features/compare/Values'
import { command } from '@/lib/command'
import { flat, matrix } from '@/lib/matrix'
import type { CompareSearch } from '@/lib/search'
import { Empty, ErrorNote, Panel, Waiting } from '@/ui/Blocks'
import { CopyButton } from '@/ui/Copy'
import { useSayLeaf } from '@/ui/leaf'
import { Page } from '@/ui/Page'
import { State } from '@/ui/State'
import { Ago } from '@/ui/Time'

/** Two runs held against each other: what was different, down to the lines of code. */
export function Diff() {
  const { t } = useTranslation()
  const { a = '', b = '' } = useParams({ strict: false })
  const one = useQuery(runQuery(a))
  const two = useQuery(runQuery(b))
  useSayLeaf(one.data && two.data ? `${one.data.run.ref} → ${two.data.run.ref}` : '')
  if (one.error || two.error)
    return (
      <div style={{ padding: 20 }}>
        <ErrorNote error={one.error ?? two.error} />
      </div>
    )
  if (!one.data || !two.data) return <Waiting />
  return (
    <Page title={t('diff_title')} actions={<Actions a={one.data.run} b={two.data.run} />}>
      <div className={css.pair}>
        <Side run={one.data.run} />
        <span className="dim">→</span>
        <Side run={two.data.run} />
      </div>
      <Differences a={one.data} b={two.data} />
    </Page>
  )
}

function Actions({ a, b }: { a: RunView; b: RunView }) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    <div style={{ display: 'flex', gap: 8, alignItems: 'center' }}>
      <CopyButton text={command('diff', a.ref, b.ref)} label={t('copy_as_command')} terminal />
      <Button
        variant="default"
        leftSection={<ArrowLeftRight size={14} aria-hidden />}
        onClick={() => void navigate({ to: '/diff/$a/$b', params: { a: b.id, b: a.id } })}
      >
        {t('diff_swap')}
      </Button>
      <Button
        variant="default"
        leftSection={<ChartSpline size={14} aria-hidden />}
        onClick={() => void navigate({ to: '/compare', search: { runs: `${a.id},${b.id}` } })}
      >
        {t('compare')}
      </Button>
    </div>
  )
}

function Side({ run }: { run: RunView }) {
  return (
    <div className={css.side}>
      <div className={css.sideName}>
        <Link to="/runs/$run" params={{ run: run.id }} className="cut">
          {run.name || run.ref}
        </Link>
        <State state={run.state} pill />
      </div>
      <span className="dim">
        {run.ref} · {run.owner} · <Ago us={run.created_us} />
      </span>
    </div>
  )
}

function Differences({ a, b }: { a: RunDetail; b: RunDetail }) {
  const { t } = useTranslation()
  const search: CompareSearch = useSearch({ strict: false })
  const navigate = useNavigate()
  const all = search.all === '1'
  const onAll = (on: boolean) =>
    void navigate({ to: '.', search: (was: CompareSearch) => ({ ...was, all: on ? '1' : '' }), replace: true })
  const runs = useMemo(() => [a.run, b.run], [a, b])
  const shared = { runs, all, onAll }
  const rows = (of: (detail: RunDetail) => Record<string, unknown>) => matrix([of(a), of(b)])
  const params = rows((detail) => flat({ ...detail.run.params, ...detail.spec.params }))
  const packages = rows(packagesOf)
  return (
    <>
      <Panel title={t('tab_params')} flush>
        <Matrix label={t('tab_params')} rows={params} {...shared} />
      </Panel>
      <Panel title={t('compare_record')} flush>
        <Matrix label={t('compare_record')} rows={rows(recordOf)} {...shared} />
      </Panel>
      {packages.length > 0 && (
        <Panel title={t('packages')} flush>
          <Matrix label={t('packages')} rows={packages} {...shared} />
        </Panel>
      )}
      <Code a={a} b={b} />
      <Panel title={t('tab_metrics')} flush>
        <Last {...shared} />
      </Panel>
    </>
  )
}

function Code({ a, b }: { a: RunDetail; b: RunDetail }) {
  const { t } = useTranslation()
  const [one, two] = [a.tree?.digest, b.tree?.digest]
  if (!one && !two) return null
  if (one === two) return <Panel title={t('tab_code')}>{t('code_same')}</Panel>
  if (!one || !two) return <Panel title={t('tab_code')}>{t('code_one_side')}</Panel>
  return <CodeDiff a={one} b={two} patch={(text, label) => <CodeText text={text} patch label={label} />} />
}

function Last(props: { runs: RunView[]; all: boolean; onAll: (all: boolean) => void }) {
  const { t } = useTranslation()
  const ids = props.runs.map((run) => run.id)
  const names = useQuery(columnNames('', '', idFilter(ids), 1000))
  const columns = (names.data?.metrics ?? []).map(({ name }) => `metrics.${name}`)
  const query = useQuery({ ...runsOf(ids, columns), enabled: Boolean(names.data) })
  if (!query.data) return <Waiting />
  if (columns.length === 0) return <Empty title={t('metrics_none')} />
  return <Values {...props} runs={query.data} />
}
