import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { measure, number } from '@/lib/format'
import { type MatrixRow, matrix, spread } from '@/lib/matrix'
import css from './compare.module.css'
import { Matrix } from './Matrix'

interface Props {
  runs: RunView[]
  all: boolean
  onAll: (all: boolean) => void
}

/** Last values of all metrics, with mean and spread over the runs. */
export function Values({ runs, all, onAll }: Props) {
  const { t } = useTranslation()
  const rows = useMemo(() => matrix(runs.map((run) => run.metrics ?? {})), [runs])
  return (
    <Matrix
      label={t('tab_metrics')}
      runs={runs}
      rows={rows}
      all={all}
      onAll={onAll}
      marked={false}
      cell={(row, value) => <Cell row={row} value={value} />}
      sum={{ title: t('mean_spread'), cell: (row) => <Sum row={row} /> }}
    />
  )
}

/** For losses and errors the least is bold, for accuracies and rates the greatest; where neither is known, none. */
function Cell({ row, value }: { row: MatrixRow; value: unknown }) {
  const goal = /loss|error|perplexity|ppl|bpb/i.test(row.name)
    ? Math.min
    : /acc|f1|bleu|auc|reward/i.test(row.name)
      ? Math.max
      : null
  const numbers = row.values.filter((one): one is number => typeof one === 'number')
  const best = goal !== null && row.differs && value === goal(...numbers)
  return <span className={best ? css.best : undefined}>{measure(row.name, value as number | string | undefined)}</span>
}

function Sum({ row }: { row: MatrixRow }) {
  const found = spread(row.values)
  if (!found) return <span className="dim">–</span>
  return (
    <span style={{ whiteSpace: 'nowrap' }}>
      {measure(row.name, found.mean)}
      <span className="dim"> ± {number(found.std, 2)}</span>
    </span>
  )
}
