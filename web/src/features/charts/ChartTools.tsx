import { Button, SegmentedControl, Slider, Switch, TextInput } from '@mantine/core'
import { RotateCcw, Search } from 'lucide-react'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { locale } from '@/i18n'
import type { RunSearch } from '@/lib/search'
import css from './charts.module.css'
import { xText } from './plot'
import type { View } from './view'

interface Props {
  view: View
  search: RunSearch
  go: (change: Partial<RunSearch>) => void
  attempts: number
  ranks: number
}

export function ChartTools({ view, search, go, attempts, ranks }: Props) {
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
      <SegmentedControl
        aria-label={t('x_axis')}
        value={view.x}
        onChange={(x) =>
          go({ x: x === 'step' ? undefined : (x as 'wall' | 'relative'), from: '', to: '' } as Partial<RunSearch>)
        }
        data={[
          { value: 'step', label: t('x_step') },
          { value: 'relative', label: t('x_relative') },
          { value: 'wall', label: t('x_wall') },
        ]}
      />
      <Smoothing value={view.smoothing} onChange={(value) => go({ smooth: value ? String(value) : '' })} />
      <Switch
        size="xs"
        label={t('log_y')}
        checked={view.log}
        onChange={(event) => go({ log: event.currentTarget.checked ? '1' : '' })}
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
      <Switch
        size="xs"
        label={t('as_table')}
        checked={search.table === '1'}
        onChange={(event) => go({ table: event.currentTarget.checked ? '1' : '' })}
      />
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
