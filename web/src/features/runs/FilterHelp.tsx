import { useTranslation } from 'react-i18next'
import type { Key } from '@/i18n'
import css from './runs.module.css'

const FIELDS: [string, Key][] = [
  ['state, cause', 'filter_states'],
  ['name, owner, project', 'filter_texts'],
  ['tags', 'filter_tags'],
  ['metrics.loss', 'filter_metrics'],
  ["params.lr, params.'a b'", 'filter_params'],
  ['created, started, ended', 'filter_times'],
]

const EXAMPLES = [
  "state = 'running'",
  'metrics.loss < 2 and params.lr = 0.001',
  "tags has 'baseline' and not state = 'failed'",
  "name contains 'wide' or owner = 'admin'",
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
