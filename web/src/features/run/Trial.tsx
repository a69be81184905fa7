import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import type { Forecast, RunDetail, TrialReport } from '@/api/types'
import { sentence, word } from '@/i18n'
import { duration, number, size } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import css from './run.module.css'

/** What a few real steps told before the whole run: speed, memory, where the loss goes, and what the run would take. */
export function Trial({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { trial } = detail
  if (!trial) return null
  const own = trial.trial_id === detail.run.id
  return (
    <Panel title={t('trial')}>
      <Facts
        rows={[
          [t('col_state'), word('trial_state', trial.state)],
          [t('trial_run'), !own && trial.trial_id && <RunTo key="t" id={trial.trial_id} name={trial.trial_ref} />],
          [
            t('trial_of'),
            own &&
              trial.run_ids?.length &&
              trial.run_ids.map((id, i) => (
                <span key={id}>
                  {i > 0 && ', '}
                  <RunTo id={id} name={trial.runs?.[i] ?? id} />
                </span>
              )),
          ],
          [t('col_why'), trial.reason && sentence(`reason.${trial.reason.code}`, trial.reason.params)],
          ...(trial.data ?? []).map((slice): [string, string] => [
            `${t('data')} ${slice.name}`,
            t('trial_slice', {
              files: slice.files,
              of_files: slice.of_files,
              size: size(slice.size_bytes),
              of_size: size(slice.of_bytes),
            }),
          ]),
          ...(trial.report ? measured(trial.report, t) : []),
        ]}
      />
      {trial.report?.forecast && <Ahead forecast={trial.report.forecast} />}
      {(trial.report?.remarks ?? []).map((one) => (
        <p key={one.code} className={css.note}>
          {sentence(`reason.${one.code}`, one.params)}
        </p>
      ))}
    </Panel>
  )
}

function RunTo({ id, name }: { id: string; name: string }) {
  return (
    <Link to="/runs/$run" params={{ run: id }}>
      {name}
    </Link>
  )
}

type Words = ReturnType<typeof useTranslation>['t']

function measured(report: TrialReport, t: Words): [string, string | undefined][] {
  const bytes = (value: number | null | undefined) => (typeof value === 'number' ? size(value) : undefined)
  const { loss } = report
  return [
    [t('steps'), report.steps ? `${number(report.steps)} · ${duration(report.seconds ?? 0)}` : undefined],
    [t('trial_startup'), typeof report.startup_s === 'number' ? duration(report.startup_s) : undefined],
    [t('trial_speed'), typeof report.steps_per_s === 'number' ? number(report.steps_per_s, 3) : undefined],
    [
      t('trial_card_peak'),
      typeof report.peak_card_bytes === 'number'
        ? `${size(report.peak_card_bytes)}${report.card_bytes ? ` / ${size(report.card_bytes)}` : ''}`
        : undefined,
    ],
    [t('trial_memory_peak'), bytes(report.peak_rss_bytes)],
    [t('trial_checkpoint'), bytes(report.checkpoint_bytes)],
    [
      loss?.key ?? '',
      loss
        ? `${number(loss.first)} → ${number(loss.last)}${loss.trend ? ` · ${word('trend', loss.trend)}` : ''}`
        : undefined,
    ],
  ]
}

function Ahead({ forecast }: { forecast: Forecast }) {
  const { t } = useTranslation()
  const range = (mean: string, low: string, high: string) => t('range', { value: mean, low, high })
  const hours = (value: number) => number(value, 3)
  return (
    <div style={{ marginTop: 14 }}>
      <h3 style={{ margin: '0 0 8px', fontSize: 13 }}>
        {t('forecast', { steps: number(forecast.steps), cards: forecast.cards })}
      </h3>
      <Facts
        rows={[
          [
            t('forecast_time'),
            range(duration(forecast.seconds), duration(forecast.seconds_low), duration(forecast.seconds_high)),
          ],
          [
            t('col_card_hours'),
            range(hours(forecast.card_hours), hours(forecast.card_hours_low), hours(forecast.card_hours_high)),
          ],
          [
            t('cost'),
            typeof forecast.cost === 'number' &&
              `${range(hours(forecast.cost), hours(forecast.cost_low ?? 0), hours(forecast.cost_high ?? 0))} ${forecast.currency ?? ''}`,
          ],
        ]}
      />
      {(forecast.how ?? []).map((one) => (
        <p key={one.code} className={css.note}>
          {sentence(`reason.${one.code}`, one.params)}
        </p>
      ))}
    </div>
  )
}
