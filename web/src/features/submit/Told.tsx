import { CircleCheck, TriangleAlert } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import type { FaultView, SubmitReply } from '@/api/types'
import { known, sentence } from '@/i18n'
import { duration, number, plain } from '@/lib/format'
import { Facts, Panel } from '@/ui/Blocks'
import { Table } from '@/ui/Table'
import css from './submit.module.css'

/** What is wrong, field by field; a press brings the field into sight. */
export function Faults({ faults }: { faults: FaultView[] }) {
  const { t } = useTranslation()
  if (faults.length === 0) return null
  return (
    <Panel title={t('form_faults', { count: faults.length })}>
      <ul className={css.faults}>
        {faults.map((fault) => (
          <li key={`${fault.field}${fault.code}${fault.line ?? ''}`}>
            <TriangleAlert size={14} aria-hidden />
            <span>
              {fault.field && (
                <button type="button" className={css.toField} onClick={() => show(fault.field ?? '')}>
                  {fault.field}
                </button>
              )}
              {fault.line ? <span className="dim"> {t('line_n', { n: fault.line })}</span> : null}{' '}
              {sentence(fault.code, fault.params)}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function show(field: string): void {
  const at = document.querySelector<HTMLElement>(`[data-field="${CSS.escape(field)}"]`)
  at?.scrollIntoView({ block: 'center' })
  at?.focus()
}

/** What a dry run said: when the run would start, what it would cost, and where each value came from. */
export function Told({ reply }: { reply: SubmitReply }) {
  const { t } = useTranslation()
  const { estimate, warnings = [], resolved = [] } = reply
  const money = (value: number | null | undefined) =>
    typeof value === 'number' ? `${number(value, 4)} ${estimate?.currency ?? ''}` : null
  const hours = (value: number | null | undefined) => (typeof value === 'number' ? `${number(value, 4)} h` : null)
  return (
    <Panel title={t('dry_run_told')}>
      <p className={css.good}>
        <CircleCheck size={16} aria-hidden /> {t('dry_run_good')}
      </p>
      {warnings.map((warning) => (
        <p key={warning.code} className={css.warning}>
          <TriangleAlert size={14} aria-hidden />{' '}
          {sentence(known(`reason.${warning.code}`) ? `reason.${warning.code}` : warning.code, warning.params)}
        </p>
      ))}
      {estimate && (
        <Facts
          rows={[
            [
              t('estimate_start'),
              estimate.starts_now
                ? t('estimate_now')
                : estimate.reason && sentence(`reason.${estimate.reason.code}`, estimate.reason.params),
            ],
            [t('estimate_ahead'), estimate.ahead ? number(estimate.ahead) : null],
            [
              t('estimate_not_before'),
              typeof estimate.not_before_s === 'number' ? duration(estimate.not_before_s) : null,
            ],
            [t('estimate_hours_most'), hours(estimate.card_hours_most)],
            [t('estimate_hours_like', { count: estimate.like ?? 0 }), hours(estimate.card_hours_like)],
            [
              t('estimate_time_like'),
              typeof estimate.seconds_like === 'number' ? duration(estimate.seconds_like) : null,
            ],
            [t('estimate_cost_most'), money(estimate.cost_most)],
            [t('estimate_cost_like'), money(estimate.cost_like)],
          ]}
        />
      )}
      {resolved.length > 0 && (
        <details style={{ marginTop: 12 }}>
          <summary>{t('resolved_n', { count: resolved.length })}</summary>
          <Table
            label={t('resolved_n', { count: resolved.length })}
            rows={resolved}
            rowKey={(one) => one.field}
            columns={[
              { id: 'field', title: t('field'), cell: (one) => <span className="mono">{one.field}</span> },
              { id: 'value', title: t('value'), cell: (one) => <span className="mono">{plain(one.value)}</span> },
              { id: 'origin', title: t('origin'), cell: (one) => sentence(`origin.${one.origin ?? 'file'}`) },
            ]}
          />
        </details>
      )}
    </Panel>
  )
}
