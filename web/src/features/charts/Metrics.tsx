import { useQuery } from '@tanstack/react-query'
import { ChevronDown, ChevronRight } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { keys as keysQuery } from '@/api/queries'
import type { KeyInfo, RunDetail } from '@/api/types'
import type { RunSearch } from '@/lib/search'
import { section } from '@/lib/series'
import { Async, Empty } from '@/ui/Blocks'
import { ChartCard } from './ChartCard'
import { ChartTools } from './ChartTools'
import css from './charts.module.css'
import { KeysTable } from './KeysTable'
import { type View, viewOf } from './view'

interface Props {
  detail: RunDetail
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
}

export function Metrics({ detail, search, go }: Props) {
  const { t } = useTranslation()
  const query = useQuery(keysQuery(detail.run.id))
  const steps = Math.max(1, ...(query.data?.keys ?? []).map((info) => info.last_step ?? 0))
  const { started_us: from = 0, ended_us: to = 0, contact_us: seen = 0 } = detail.run
  const view = useMemo(
    () => viewOf(search, steps, ((to || seen || from) - from) / 1e6),
    [search, steps, from, to, seen],
  )
  return (
    <>
      <ChartTools
        view={view}
        search={search}
        go={go}
        attempts={detail.attempts?.length ?? 1}
        ranks={detail.run.cards ?? 1}
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
                <Sections run={detail.run.id} keys={found} view={view} go={go} />
              )}
            </div>
          )
        }}
      </Async>
    </>
  )
}

/** A pattern where it is one, else plain words. */
function matches(key: string, find: string): boolean {
  if (!find) return true
  try {
    return new RegExp(find, 'i').test(key)
  } catch {
    return key.toLowerCase().includes(find.toLowerCase())
  }
}

interface SectionsProps {
  run: string
  keys: KeyInfo[]
  view: View
  go: (change: Partial<RunSearch>) => void
}

function Sections({ run, keys, view, go }: SectionsProps) {
  const groups = useMemo(() => Map.groupBy(keys, (info) => section(info.key)), [keys])
  const zoom = useCallback((from: number, to: number) => go({ from: tidy(from), to: tidy(to) }), [go])
  return [...groups.entries()]
    .sort(([a], [b]) => order(a) - order(b) || a.localeCompare(b))
    .map(([name, some]) => <SectionOf key={name} name={name} run={run} keys={some} view={view} zoom={zoom} />)
}

function order(name: string): number {
  return name === '' ? 0 : /^(system|sys)\b/.test(name) ? 2 : 1
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(12)))
}

interface SectionProps {
  name: string
  run: string
  keys: KeyInfo[]
  view: View
  zoom: (from: number, to: number) => void
}

function SectionOf({ name, run, keys, view, zoom }: SectionProps) {
  const { t } = useTranslation()
  const [open, setOpen] = useState(true)
  const Icon = open ? ChevronDown : ChevronRight
  return (
    <section className={css.section}>
      <h2 className={css.sectionTitle}>
        <button type="button" className={css.sectionHead} onClick={() => setOpen((was) => !was)} aria-expanded={open}>
          <Icon size={15} aria-hidden />
          {name || t('section_main')} <span className="num">{keys.length}</span>
        </button>
      </h2>
      {open && (
        <div className={css.grid}>
          {keys.map((info) => (
            <ChartCard key={info.key} run={run} info={info} view={view} onZoom={zoom} />
          ))}
        </div>
      )}
    </section>
  )
}
