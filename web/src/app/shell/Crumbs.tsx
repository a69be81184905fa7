import { Link, useLocation } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import { Fragment } from 'react'
import { useTranslation } from 'react-i18next'
import type { Key } from '@/i18n'
import { useLeaf } from '@/ui/leaf'
import css from './shell.module.css'

const ROOTS: Record<string, Key> = {
  runs: 'nav_runs',
  compare: 'compare',
  diff: 'diff',
  new: 'new_run',
  pool: 'nav_pool',
  datasets: 'nav_datasets',
  models: 'nav_models',
  reviews: 'nav_reviews',
  settings: 'nav_settings',
}

export function Crumbs() {
  const { t } = useTranslation()
  const [root = 'runs', child] = useLocation().pathname.split('/').filter(Boolean)
  const name = useLeaf()
  const title = t(ROOTS[root] ?? 'nav_runs')
  const parts = child ? [title, name || decodeURIComponent(child)] : [title]
  return (
    <nav className={css.crumbs} aria-label={t('crumbs_label')}>
      {parts.map((part, i) => (
        <Fragment key={part}>
          {i > 0 && <ChevronRight size={14} aria-hidden className="dim" />}
          {i < parts.length - 1 ? (
            <Link to={root === 'diff' ? '/compare' : (`/${root}` as '/runs')}>{part}</Link>
          ) : (
            <span aria-current="page" className="cut">
              {part}
            </span>
          )}
        </Fragment>
      ))}
    </nav>
  )
}
