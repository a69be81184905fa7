import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { duration, number } from '@/lib/format'
import { isLive } from '@/lib/states'
import { Panel } from '@/ui/Blocks'
import { Bar } from '@/ui/Small'
import { Ago } from '@/ui/Time'
import css from './run.module.css'

export function ProgressPanel({ run }: { run: RunView }) {
  const { t } = useTranslation()
  const { step = 0, steps_total: total = 0, seconds_left: left, updated_us: at } = run.progress ?? {}
  if (!run.progress || (step === 0 && total === 0)) return null
  const tone = run.state === 'finished' ? 'green' : run.state === 'failed' ? 'red' : 'blue'
  return (
    <Panel>
      <div className={css.progress}>
        <div className={css.progressRow}>
          <span>
            <span className={css.big}>{number(step)}</span>
            <span className="dim">
              {' '}
              {total > 0 && `/ ${number(total)} `}
              {t('steps')}
            </span>
          </span>
          {isLive(run.state) && typeof left === 'number' && (
            <span style={{ textAlign: 'right' }}>
              <span className={css.big}>{duration(left)}</span>
              <span className="dim"> {t('time_left')}</span>
            </span>
          )}
        </div>
        {total > 0 && <Bar share={step / total} tone={tone} label={t('col_progress')} />}
        {isLive(run.state) && at ? (
          <span className="dim" style={{ fontSize: 12 }}>
            {t('updated')} <Ago us={at} />
          </span>
        ) : null}
      </div>
    </Panel>
  )
}
