import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { useCallback } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError } from '@/api/client'
import { useTopic } from '@/api/news'
import { run as runQuery } from '@/api/queries'
import type { RunDetail } from '@/api/types'
import { Glance } from '@/features/charts/Glance'
import { Metrics } from '@/features/charts/Metrics'
import { Artifacts } from '@/features/code/Artifacts'
import { Code } from '@/features/code/Code'
import { Docs } from '@/features/docs/Docs'
import { Lineage } from '@/features/lineage/Lineage'
import { LogsPanel } from '@/features/logs/LogsPanel'
import { Checkpoints } from '@/features/run/Checkpoints'
import { Environment } from '@/features/run/Environment'
import { Head } from '@/features/run/Head'
import { Params } from '@/features/run/Params'
import css from '@/features/run/run.module.css'
import { Summary } from '@/features/run/Summary'
import type { RunSearch } from '@/lib/search'
import { Empty, ErrorNote, Waiting } from '@/ui/Blocks'
import { useSayLeaf } from '@/ui/leaf'

export function Run() {
  const { t } = useTranslation()
  const { run: id = '', tab = 'summary' } = useParams({ strict: false })
  const query = useQuery(runQuery(id))
  const detail = query.data
  useSayLeaf(detail?.run.ref ?? '')
  useTopic(detail ? `run:${detail.run.id}` : '')
  if (!detail) {
    if (query.error instanceof ApiError && query.error.status === 404)
      return <Empty title={t('run_missing')}>{t('run_missing_how')}</Empty>
    return <div style={{ padding: 20 }}>{query.error ? <ErrorNote error={query.error} /> : <Waiting />}</div>
  }
  return (
    <div className={css.page} data-ready={tab}>
      <Head detail={detail} tab={tab} />
      <Body detail={detail} tab={tab} />
    </div>
  )
}

function Body({ detail, tab }: { detail: RunDetail; tab: string }) {
  const search: RunSearch = useSearch({ strict: false })
  const navigate = useNavigate()
  const go = useCallback(
    (change: Partial<RunSearch>) =>
      void navigate({ to: '.', search: (was: RunSearch) => ({ ...was, ...change }), replace: true }),
    [navigate],
  )
  if (tab === 'logs')
    return (
      <div className={css.fill}>
        <LogsPanel detail={detail} search={search} go={go} />
      </div>
    )
  if (tab === 'metrics')
    return (
      <div className={css.scroll}>
        <Metrics detail={detail} search={search} go={go} />
      </div>
    )
  return (
    <div className={css.scroll}>
      <div className={css.body}>
        <Tab detail={detail} tab={tab} search={search} go={go} />
      </div>
    </div>
  )
}

interface TabProps {
  detail: RunDetail
  tab: string
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

function Tab({ detail, tab, search, go }: TabProps) {
  const navigate = useNavigate()
  const openFile = (file: string) =>
    void navigate({ to: '/runs/$run/$tab', params: { run: detail.run.id, tab: 'code' }, search: { file } })
  if (tab === 'params') return <Params detail={detail} />
  if (tab === 'code') return <Code detail={detail} search={search} go={go} />
  if (tab === 'docs') return <Docs detail={detail} search={search} go={go} onFile={openFile} />
  if (tab === 'environment') return <Environment detail={detail} />
  if (tab === 'checkpoints') return <Checkpoints detail={detail} />
  if (tab === 'artifacts') return <Artifacts detail={detail} search={search} go={go} />
  if (tab === 'lineage') return <Lineage detail={detail} />
  return <Summary detail={detail} charts={<Glance detail={detail} />} />
}
