import { ActionIcon, Modal, Tooltip } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Maximize2, Pin, PinOff } from 'lucide-react'
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { curve } from '@/api/queries'
import type { Anomaly, KeyInfo } from '@/api/types'
import { locale } from '@/i18n'
import { count, measure, number } from '@/lib/format'
import { ErrorNote } from '@/ui/Blocks'
import { Marks } from '@/ui/Marks'
import { Middle } from '@/ui/Small'
import css from './charts.module.css'
import { useNearby } from './nearby'
import { type Picture, picture } from './picture'
import { TimeSeries } from './TimeSeries'
import type { Drawn, View } from './view'

interface Props {
  runs: Drawn[]
  info: KeyInfo
  view: View
  /** Without it the chart does not zoom. */
  onZoom?: (from: number, to: number) => void
  pinned?: boolean
  /** What was noticed about the run; drawn where x is the step. */
  noticed?: Anomaly[] | undefined
  onPin?: (key: string) => void
}

/** One metric. Its curve is asked for, and its canvas made, only while the card is near the window. */
export function ChartCard({ runs, info, view, onZoom, pinned = false, noticed, onPin }: Props) {
  const { t } = useTranslation()
  const [box, near] = useNearby()
  const [big, setBig] = useState(false)
  const query = useQuery({
    ...curve({
      runs: runs.map((run) => run.id),
      key: info.key,
      x: view.x,
      from: view.from,
      to: view.to,
      allAttempts: view.allAttempts,
      allRanks: view.allRanks,
    }),
    enabled: near || big,
  })
  const mine = useMemo(() => (noticed ?? []).filter((one) => one.key === info.key), [noticed, info.key])
  const spans = useMemo(
    () =>
      view.x === 'step'
        ? mine.map((one) => ({ from: one.first_step ?? 0, to: one.last_step ?? 0, open: one.open ?? true }))
        : [],
    [mine, view.x],
  )
  const drawn = useMemo(
    () =>
      query.data
        ? picture(query.data, { smoothing: view.smoothing, unit: view.unit, log: view.log, runs, spans })
        : null,
    [query.data, view.smoothing, view.unit, view.log, runs, spans],
  )
  const unit = typeof info.definition?.unit === 'string' ? info.definition.unit : ''
  const chart = drawn && (
    <TimeSeries
      name={info.key}
      picture={drawn}
      log={view.log}
      clip={view.clip}
      x={view.x}
      from={view.from}
      to={view.to}
      onZoom={onZoom}
    />
  )
  const pinLabel = t(pinned ? 'chart_unpin' : 'chart_pin', { name: info.key })
  return (
    <article className={css.card} ref={box} data-chart={info.key} data-drawn={Boolean(near && drawn) || undefined}>
      <div className={css.cardHead}>
        <h3>
          <Middle text={info.key} tail={14} />
        </h3>
        {info.last !== undefined && runs.length === 1 && (
          <Tooltip label={t('last_at_step', { step: number(info.last_step ?? 0) })}>
            <span className={css.value}>
              {measure(info.key, info.last)} {unit}
            </span>
          </Tooltip>
        )}
        <Marks kinds={mine.filter((one) => one.open ?? true).map((one) => one.kind)} />
        {onPin && (
          <Tooltip label={pinLabel}>
            <ActionIcon size="sm" aria-label={pinLabel} onClick={() => onPin(info.key)} data-pin={pinned || undefined}>
              {pinned ? <PinOff size={13} aria-hidden /> : <Pin size={13} aria-hidden />}
            </ActionIcon>
          </Tooltip>
        )}
        <ActionIcon size="sm" aria-label={t('chart_enlarge', { name: info.key })} onClick={() => setBig(true)}>
          <Maximize2 size={13} aria-hidden />
        </ActionIcon>
      </div>
      {query.error ? (
        <div style={{ padding: 12 }}>
          <ErrorNote error={query.error} />
        </div>
      ) : near && !big ? (
        (chart ?? <div className={css.plot} />)
      ) : (
        <div className={css.plot} />
      )}
      <Notes picture={drawn} info={info} log={view.log} />
      <Modal
        opened={big}
        onClose={() => setBig(false)}
        title={info.key}
        size="94vw"
        closeButtonProps={{ 'aria-label': t('close') }}
      >
        <div style={{ height: '78vh', display: 'flex', flexDirection: 'column' }}>{big && chart}</div>
        <Notes picture={drawn} info={info} log={view.log} />
      </Modal>
    </article>
  )
}

/** What the picture does not show by itself: buckets, values that are not finite, values a log axis cannot hold. */
function Notes({ picture: drawn, info, log }: { picture: Picture | null; info: KeyInfo; log: boolean }) {
  const { t } = useTranslation()
  return (
    <div className={css.notes}>
      <span className="num">
        {t('points_n', {
          count: drawn?.points ?? info.count ?? 0,
          shown: count(drawn?.points ?? info.count ?? 0, locale()),
        })}
      </span>
      {drawn?.bucketed && <span>{t('bucketed', { n: drawn.x.length })}</span>}
      {(info.non_finite ?? 0) > 0 && <span data-alarm="true">{t('non_finite', { count: info.non_finite ?? 0 })}</span>}
      {log && (drawn?.dropped ?? 0) > 0 && <span>{t('log_dropped', { count: drawn?.dropped ?? 0 })}</span>}
    </div>
  )
}
