import { ChevronDown, ChevronRight } from 'lucide-react'
import { useCallback, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { Anomaly, KeyInfo } from '@/api/types'
import { readPins, writePins } from '@/lib/pins'
import { section } from '@/lib/series'
import { ChartCard } from './ChartCard'
import css from './charts.module.css'
import type { ChartSearch, Drawn, View } from './view'

interface Props {
  runs: Drawn[]
  keys: KeyInfo[]
  view: View
  pins: string | undefined
  noticed?: Anomaly[] | undefined
  go: (change: ChartSearch) => void
}

/** Charts in sections by the prefix of their names, the pinned ones on top. */
export function Wall({ runs, keys, view, pins, noticed, go }: Props) {
  const { t } = useTranslation()
  const groups = useMemo(() => [...Map.groupBy(keys, (info) => section(info.key)).entries()], [keys])
  const pinned = useMemo(() => readPins(pins), [pins])
  const zoom = useCallback((from: number, to: number) => go({ from: tidy(from), to: tidy(to) }), [go])
  const pin = useCallback(
    (key: string) =>
      go({ pins: writePins(pinned.includes(key) ? pinned.filter((one) => one !== key) : [...pinned, key]) }),
    [pinned, go],
  )
  const top = pinned.flatMap((key) => keys.find((info) => info.key === key) ?? [])
  const shared = { runs, view, zoom, pin, pinned, noticed }
  return (
    <>
      {top.length > 0 && <Section name={t('pinned_charts')} keys={top} {...shared} />}
      {groups
        .sort(([a], [b]) => order(a) - order(b) || a.localeCompare(b))
        .map(([name, some]) => (
          <Section key={name} name={name || t('section_main')} keys={some} {...shared} />
        ))}
    </>
  )
}

function order(name: string): number {
  return name === '' ? 0 : /^(system|sys)\b/.test(name) ? 2 : 1
}

function tidy(value: number): string {
  return String(Number(value.toPrecision(12)))
}

interface SectionProps {
  name: string
  runs: Drawn[]
  keys: KeyInfo[]
  view: View
  zoom: (from: number, to: number) => void
  pin: (key: string) => void
  pinned: string[]
  noticed: Anomaly[] | undefined
}

function Section({ name, runs, keys, view, zoom, pin, pinned, noticed }: SectionProps) {
  const [open, setOpen] = useState(true)
  const Icon = open ? ChevronDown : ChevronRight
  return (
    <section className={css.section}>
      <h2 className={css.sectionTitle}>
        <button type="button" className={css.sectionHead} onClick={() => setOpen((was) => !was)} aria-expanded={open}>
          <Icon size={15} aria-hidden />
          {name} <span className="num">{keys.length}</span>
        </button>
      </h2>
      {open && (
        <div className={css.grid}>
          {keys.map((info) => (
            <ChartCard
              key={info.key}
              runs={runs}
              info={info}
              view={view}
              onZoom={zoom}
              pinned={pinned.includes(info.key)}
              onPin={pin}
              noticed={noticed}
            />
          ))}
        </div>
      )}
    </section>
  )
}

/** A pattern where it is one, else plain words. */
export function matches(key: string, find: string): boolean {
  if (!find) return true
  try {
    return new RegExp(find, 'i').test(key)
  } catch {
    return key.toLowerCase().includes(find.toLowerCase())
  }
}
