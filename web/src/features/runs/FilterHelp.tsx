import { useTranslation } from 'react-i18next'
import type { Key } from '@/i18n'
import css from './runs.module.css'

const FIELDS: [string, Key][] = [
  ['state, cause', 'filter_states'],
  ['name, ref, owner, project', 'filter_texts'],
  ['tags', 'filter_tags'],
  ["metrics.loss, min(metrics.'a b')", 'filter_metrics'],
  ['params.lr', 'filter_params'],
  ['created, started, ended', 'filter_times'],
  ['cards, step, duration', 'filter_numbers'],
]

const EXAMPLES = [
  "state = 'running'",
  'metrics.loss < 2 and params.lr = 0.001',
  "tags has 'baseline' and not state = 'failed'",
  "name has 'wide' or owner in ('ada', 'bo')",
  "created > '2h ago' and min(metrics.'eval/loss') < 3",
]

export function FilterHelp({ onPick }: { onPick: (filter: string) => void }) {
  const { t } = useTranslation()
  return (
    <div>
      <table className={css.helpTable}>
        <tbody>
          {FIELDS.map(([name, what]) => (
            <tr key={name}>
              <td className="mono" style={{ whiteSpace: 'nowrap' }}>
                {name}
              </td>
              <td className="dim">{t(what)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="dim" style={{ fontSize: 12, margin: '8px 0 4px' }}>
        {t('filter_operators')}
      </p>
      {EXAMPLES.map((filter) => (
        <button type="button" key={filter} className={css.example} onClick={() => onPick(filter)}>
          {filter}
        </button>
      ))}
    </div>
  )
}
