import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useTranslation } from 'react-i18next'
import { comparisons as comparisonsQuery } from '@/api/queries'
import type { RunDetail } from '@/api/types'
import { isTerminal } from '@/lib/states'
import { Panel } from '@/ui/Blocks'
import { Ago } from '@/ui/Time'

/** Tables that were made when the last run of a matrix or pair of this run had ended. */
export function Compared({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { data = [] } = useQuery({ ...comparisonsQuery(detail.run.id), enabled: isTerminal(detail.run.state) })
  if (data.length === 0) return null
  return (
    <Panel title={t('compare')}>
      {data.map((one) => (
        <div key={one.tag}>
          <Link to="/compare" search={{ runs: one.comparison.runs.map((run) => run.id).join(','), tab: 'repeats' }}>
            {t('compared_group', { tag: one.tag })}
          </Link>{' '}
          <span className="dim">
            <Ago us={one.made_us} />
          </span>
        </div>
      ))}
    </Panel>
  )
}
