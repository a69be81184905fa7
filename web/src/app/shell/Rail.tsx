import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Box, Cpu, Database, GitPullRequest, Plus, Rows3, Settings } from 'lucide-react'
import { useTranslation } from 'react-i18next'
import { status } from '@/api/queries'
import { Bar } from '@/ui/Small'
import { Logo } from './Logo'
import { ProjectPick } from './ProjectPick'
import css from './shell.module.css'

const ITEMS = [
  { to: '/runs', icon: Rows3, label: 'nav_runs' },
  { to: '/pool', icon: Cpu, label: 'nav_pool' },
  { to: '/datasets', icon: Database, label: 'nav_datasets' },
  { to: '/models', icon: Box, label: 'nav_models' },
  { to: '/reviews', icon: GitPullRequest, label: 'nav_reviews' },
  { to: '/settings', icon: Settings, label: 'nav_settings' },
] as const

export function Rail() {
  const { t } = useTranslation()
  const { data } = useQuery(status)
  const active = sum(data?.counts, ['starting', 'running', 'stopping'])
  const waiting = sum(data?.counts, ['preparing', 'queued'])
  return (
    <nav className={css.rail} aria-label={t('nav_label')}>
      <Link to="/runs" className={css.brand}>
        <Logo />
        <span>Trackbed</span>
      </Link>
      <ProjectPick />
      <Link to="/new" className={css.newRun}>
        <Plus size={15} aria-hidden />
        <span>{t('new_run')}</span>
      </Link>
      {ITEMS.map(({ to, icon: Icon, label }) => (
        <Link key={to} to={to} className={css.item} aria-label={t(label)}>
          <Icon size={16} aria-hidden />
          <span>{t(label)}</span>
          {to === '/runs' && active > 0 && <span className={css.count}>{active}</span>}
          {to === '/pool' && waiting > 0 && <span className={css.count}>{waiting}</span>}
        </Link>
      ))}
      <div className={css.grow} />
      {data && (
        <div className={css.pool}>
          <div className={css.poolRow}>
            <span>{t('cards_in_use')}</span>
            <span className="num">
              {data.cards_held ?? 0} / {data.cards_total ?? 0}
            </span>
          </div>
          <Bar share={(data.cards_held ?? 0) / Math.max(1, data.cards_total ?? 0)} label={t('cards_in_use')} />
          <div className={css.poolRow}>
            <span>Trackbed {data.version}</span>
          </div>
        </div>
      )}
    </nav>
  )
}

function sum(counts: Record<string, number> | undefined, states: string[]): number {
  return states.reduce((total, state) => total + (counts?.[state] ?? 0), 0)
}
