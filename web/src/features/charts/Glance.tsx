import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { keys as keysQuery } from '@/api/queries'
import type { KeyInfo, RunDetail } from '@/api/types'
import { ChartCard } from './ChartCard'
import css from './charts.module.css'
import { viewOf } from './view'

const VIEW = viewOf({}, 1, 1)

/** The one or two curves that people look for first; the rest is a tab away. */
export function Glance({ detail }: { detail: RunDetail }) {
  const { data } = useQuery(keysQuery(detail.run.id))
  const shown = useMemo(() => first(data?.keys ?? []), [data])
  const { id, ref } = detail.run
  const runs = useMemo(() => [{ id, label: ref, pen: 0 }], [id, ref])
  if (shown.length === 0) return null
  return (
    <div className={css.grid}>
      {shown.map((info) => (
        <ChartCard key={info.key} runs={runs} info={info} view={VIEW} />
      ))}
    </div>
  )
}

function first(keys: KeyInfo[]): KeyInfo[] {
  const own = keys.filter((info) => !/^(system|sys)\//.test(info.key) && (info.count ?? 0) > 1)
  const score = (info: KeyInfo) => (/loss/.test(info.key) ? 0 : 2) + (info.definition?.goal ? 0 : 1)
  return [...own].sort((a, b) => score(a) - score(b)).slice(0, 2)
}
