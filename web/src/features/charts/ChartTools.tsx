import { Button, Select, Slider, Switch, TextInput } from '@mantine/core'
import { MoveHorizontal, RotateCcw, Search } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { KeyInfo } from '@/api/types'
import { locale } from '@/i18n'
import css from './charts.module.css'
import { xText } from './plot'
import type { ChartSearch, View } from './view'

interface Props {
  view: View
  search: ChartSearch
  go: (change: ChartSearch) => void
  attempts: number
  ranks: number
  /** Metrics that may be the x axis. */
  keys?: KeyInfo[] | undefined
  /** Whether there is a table to switch to. */
  table?: boolean
}

export function ChartTools({ view, search, go, attempts, ranks, keys = [], table = true }: Props) {
  const { t } = useTranslation()
  const zoomed = view.from !== undefined || view.to !== undefined
  const text = (value: number | undefined) =>
    value === undefined ? '…' : xText(value, { x: view.x, locale: locale() })
  return (
    <div className={css.tools} role="toolbar" aria-label={t('chart_tools')}>
      <TextInput
        w={220}
        placeholder={t('charts_search')}
        aria-label={t('charts_search')}
        leftSection={<Search size={14} aria-hidden />}
        value={search.find ?? ''}
        onChange={(event) => go({ find: event.currentTarget.value })}
      />
      <XAxis x={view.x} keys={keys} onChange={(x) => go({ x: x === 'step' ? '' : x, from: '', to: '' })} />
      <Smoothing value={view.smoothing} onChange={(value) => go({ smooth: value ? String(value) : '' })} />
      <Switch
        size="xs"
        label={t('log_y')}
        checked={view.log}
        onChange={(event) => go({ log: event.currentTarget.checked ? '1' : '' })}
      />
      <Switch
        size="xs"
        label={t('clip')}
        checked={view.clip}
        onChange={(event) => go({ clip: event.currentTarget.checked ? '1' : '' })}
      />
      {attempts > 1 && (
        <Switch
          size="xs"
          label={t('all_attempts')}
          checked={view.allAttempts}
          onChange={(event) => go({ attempts: event.currentTarget.checked ? 'all' : '' })}
        />
      )}
      {ranks > 1 && (
        <Switch
          size="xs"
          label={t('all_ranks')}
          checked={view.allRanks}
          onChange={(event) => go({ ranks: event.currentTarget.checked ? 'all' : '' })}
        />
      )}
      {table && (
        <Switch
          size="xs"
          label={t('as_table')}
          checked={search.table === '1'}
          onChange={(event) => go({ table: event.currentTarget.checked ? '1' : '' })}
        />
      )}
      {zoomed && (
        <Button
          variant="light"
          leftSection={<RotateCcw size={13} aria-hidden />}
          onClick={() => go({ from: '', to: '' })}
        >
          {text(view.from)} – {text(view.to)} · {t('zoom_reset')}
        </Button>
      )}
    </div>
  )
}

/** Step, time, clock, or any other metric: tokens, epochs, whatever was logged at the same steps. */
function XAxis({ x, keys, onChange }: { x: string; keys: KeyInfo[]; onChange: (x: string) => void }) {
  const { t } = useTranslation()
  const times = [
    { value: 'step', label: t('x_step') },
    { value: 'relative', label: t('x_relative') },
    { value: 'wall', label: t('x_wall') },
  ]
  const names = new Set(keys.map(({ key }) => `metrics.${key}`))
  if (x.startsWith('metrics.')) names.add(x)
  const metrics = [...names].map((value) => ({ value, label: value.slice(8) }))
  return (
    <Select
      w={150}
      aria-label={t('x_axis')}
      leftSection={<MoveHorizontal size={14} aria-hidden />}
      value={x}
      onChange={(next) => onChange(next ?? 'step')}
      data={
        metrics.length
          ? [
              { group: t('x_axis'), items: times },
              { group: t('metrics'), items: metrics },
            ]
          : times
      }
      searchable
      allowDeselect={false}
      limit={200}
      comboboxProps={{ width: 260, position: 'bottom-start' }}
    />
  )
}

/** The slider moves at once; the address follows when it rests. */
function Smoothing({ value, onChange }: { value: number; onChange: (value: number) => void }) {
  const { t } = useTranslation()
  const [at, setAt] = useState(value)
  useEffect(() => setAt(value), [value])
  return (
    <div className={css.smooth}>
      <span id="smoothing">{t('smoothing')}</span>
      <Slider
        w={110}
        size="xs"
        min={0}
        max={0.99}
        step={0.01}
        label={null}
        value={at}
        onChange={(next) => {
          setAt(next)
          onChange(next)
        }}
        thumbLabel={t('smoothing')}
      />
      <span className="num" style={{ width: 28 }}>
        {at.toFixed(2)}
      </span>
    </div>
  )
}
