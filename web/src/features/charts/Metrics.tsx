import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { keys as keysQuery } from '@/api/queries'
import type { RunDetail } from '@/api/types'
import type { RunSearch } from '@/lib/search'
import { Async, Empty } from '@/ui/Blocks'
import { ChartTools } from './ChartTools'
import { KeysTable } from './KeysTable'
import { type Drawn, viewOf } from './view'
import { matches, Wall } from './Wall'

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

export function Metrics({ detail, search, go }: Props) {
  const { t } = useTranslation()
  const query = useQuery(keysQuery(detail.run.id))
  const steps = Math.max(1, ...(query.data?.keys ?? []).map((info) => info.last_step ?? 0))
  const { started_us: from = 0, ended_us: to = 0, contact_us: seen = 0, id, ref } = detail.run
  const view = useMemo(
    () => viewOf(search, steps, ((to || seen || from) - from) / 1e6),
    [search, steps, from, to, seen],
  )
  const runs = useMemo<Drawn[]>(() => [{ id, label: ref, pen: 0 }], [id, ref])
  return (
    <>
      <ChartTools
        view={view}
        search={search}
        go={go}
        attempts={detail.attempts?.length ?? 1}
        ranks={detail.run.cards ?? 1}
        keys={query.data?.keys}
      />
      <Async query={query}>
        {({ keys, total }) => {
          const found = keys.filter((info) => matches(info.key, search.find ?? ''))
          if (keys.length === 0) return <Empty title={t('metrics_none')}>{t('metrics_none_how')}</Empty>
          return (
            <div style={{ paddingBottom: 40 }}>
              {(total ?? 0) > keys.length && (
                <p className="dim" style={{ padding: '10px 20px 0', margin: 0 }}>
                  {t('shown_of', { shown: keys.length, total })}
                </p>
              )}
              {search.table === '1' ? (
                <div style={{ padding: 20 }}>
                  <KeysTable keys={found} />
                </div>
              ) : (
                <Wall runs={runs} keys={found} view={view} pins={search.pins} noticed={detail.anomalies} go={go} />
              )}
            </div>
          )
        }}
      </Async>
    </>
  )
}
