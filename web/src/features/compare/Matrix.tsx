import { Switch, TextInput, useComputedColorScheme } from '@mantine/core'
import { Search } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { plain } from '@/lib/format'
import type { MatrixRow } from '@/lib/matrix'
import { Empty } from '@/ui/Blocks'
import css from './compare.module.css'
import { Swatch } from './RunChips'

const SHOWN = 500

interface Props {
  label: string
  runs: RunView[]
  rows: MatrixRow[]
  /** Equal rows are shown too. */
  all: boolean
  onAll: (all: boolean) => void
  cell?: (row: MatrixRow, value: unknown) => ReactNode
  /** Marks what is not as in the first run. */
  marked?: boolean
  /** A further column behind the runs. */
  sum?: { title: string; cell: (row: MatrixRow) => ReactNode }
}

/** Names down, runs across. What is equal everywhere is left out until it is asked for. */
export function Matrix({ label, runs, rows, all, onAll, cell, marked = true, sum }: Props) {
  const { t } = useTranslation()
  const dark = useComputedColorScheme('light') === 'dark'
  const [search, setSearch] = useState('')
  const [most, setMost] = useState(SHOWN)
  const needle = search.toLowerCase()
  const found = rows.filter((row) => (all || row.differs) && row.name.toLowerCase().includes(needle))
  const equal = rows.filter((row) => !row.differs).length
  return (
    <>
      <div className={css.tools}>
        <TextInput
          w={220}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          placeholder={t('search')}
          aria-label={`${t('search')}: ${label}`}
          leftSection={<Search size={14} aria-hidden />}
        />
        <Switch
          size="xs"
          label={t('only_differences')}
          checked={!all}
          onChange={(event) => onAll(!event.currentTarget.checked)}
        />
        <span className="dim">{!all && equal > 0 && t('equal_hidden', { count: equal })}</span>
      </div>
      {found.length === 0 ? (
        <Empty title={t(needle ? 'nothing_found' : 'no_differences')} />
      ) : (
        <div className={css.matrixBox} tabIndex={0} role="region" aria-label={label}>
          <table className={css.matrix} aria-label={label}>
            <thead>
              <tr>
                <th scope="col">{t('name')}</th>
                {runs.map((run, i) => (
                  <th key={run.id} scope="col" title={run.name}>
                    <span className={css.runHead}>
                      <Swatch index={i} dark={dark} />
                      <span className="cut">{run.name || run.ref}</span>
                    </span>
                    <span className="dim">{run.ref}</span>
                  </th>
                ))}
                {sum && <th scope="col">{sum.title}</th>}
              </tr>
            </thead>
            <tbody>
              {found.slice(0, most).map((row) => (
                <tr key={row.name} data-differs={row.differs || undefined}>
                  <th scope="row" className="mono">
                    {row.name}
                  </th>
                  {row.values.map((value, i) => (
                    <td
                      key={runs[i]?.id}
                      data-off={
                        (marked && i > 0 && JSON.stringify(value) !== JSON.stringify(row.values[0])) || undefined
                      }
                    >
                      {cell ? cell(row, value) : <Value value={value} />}
                    </td>
                  ))}
                  {sum && <td>{sum.cell(row)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
          {found.length > most && (
            <button type="button" className={css.more} onClick={() => setMost(most + SHOWN)}>
              {t('show_rest', { count: found.length - most })}
            </button>
          )}
        </div>
      )}
    </>
  )
}

function Value({ value }: { value: unknown }) {
  if (value === undefined || value === null || value === '') return <span className="dim">–</span>
  const text = plain(value)
  return (
    <span className={css.value} title={text.length > 40 ? text.slice(0, 2000) : undefined}>
      {text.length > 200 ? `${text.slice(0, 200)}…` : text}
    </span>
  )
}
