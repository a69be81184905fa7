import { Link } from '@tanstack/react-router'
import type { CSSProperties, ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { sentence, word } from '@/i18n'
import { cardHours } from '@/lib/format'
import { tone } from '@/lib/states'
import { CopyButton } from '@/ui/Copy'
import { Marks } from '@/ui/Marks'
import { Tag } from '@/ui/Small'
import { State } from '@/ui/State'
import { Ago, Span } from '@/ui/Time'
import css from './run.module.css'
import { TABS } from './tabs'
import { Verbs } from './Verbs'

export function Head({ detail, tab }: { detail: RunDetail; tab: string }) {
  const { t } = useTranslation()
  const { run } = detail
  const total = run.progress?.steps_total ?? 0
  const share = total > 0 ? (run.progress?.step ?? 0) / total : undefined
  return (
    <header className={css.head}>
      <div className={css.titleRow}>
        <h1 className={`${css.title} cut`} title={run.name || run.ref}>
          {run.name || run.ref}
        </h1>
        <State state={run.state} share={share} pill />
        <Marks kinds={run.marks ?? open(detail)} words />
        <Verbs run={run} />
      </div>
      <div className={css.meta}>
        <span style={{ display: 'inline-flex', alignItems: 'center' }}>
          <b>{run.ref}</b>
          <CopyButton text={run.id} label={t('copy_what', { what: run.id })} />
        </span>
        <Item name={t('col_owner')}>{run.owner || '–'}</Item>
        {!run.outside && <Item name={t('col_cards')}>{run.cards ?? 0}</Item>}
        <Item name={t('col_created')}>
          <Ago us={run.created_us} />
        </Item>
        {run.started_us ? (
          <Item name={t('col_duration')}>
            <Span from={run.started_us} to={run.ended_us} />
          </Item>
        ) : null}
        {!run.outside && <Item name={t('col_card_hours')}>{cardHours(run.card_seconds ?? 0)}</Item>}
        {run.outside && <Tag>{t('outside')}</Tag>}
        {(run.tags ?? []).map((tag) => (
          <Tag key={tag}>{tag}</Tag>
        ))}
      </div>
      {!(tab === 'summary' && run.state === 'failed') && <Why detail={detail} />}
      <Tabs detail={detail} tab={tab} />
    </header>
  )
}

/** Kinds of what is open, from the record itself. */
function open(detail: RunDetail): string[] {
  return (detail.anomalies ?? []).filter((one) => one.open ?? true).map((one) => one.kind)
}

function Item({ name, children }: { name: string; children: ReactNode }) {
  return (
    <span>
      {name} <b className="num">{children}</b>
    </span>
  )
}

/** One sentence: what ended the run, or what it waits for. */
function Why({ detail }: { detail: RunDetail }) {
  const { run } = detail
  const cause = run.cause && run.cause !== 'done' ? word('cause', run.cause) : ''
  const reason = run.reason ? sentence(`reason.${run.reason.code}`, run.reason.params) : ''
  if (!cause && !reason) return null
  return (
    <div
      className={css.reason}
      style={{ '--tone': `var(--tone-${tone(run.state)})`, color: 'var(--tone)' } as CSSProperties}
    >
      {[cause, reason].filter(Boolean).join(' · ')}
    </div>
  )
}

function Tabs({ detail, tab }: { detail: RunDetail; tab: string }) {
  const { t } = useTranslation()
  return (
    <nav className={css.tabs} aria-label={t('tabs_label')}>
      {TABS.map((one) => {
        const n = one.count?.(detail) ?? 0
        return (
          <Link
            key={one.id}
            to="/runs/$run/$tab"
            params={{ run: detail.run.id, tab: one.id }}
            className={css.tab}
            activeProps={{ 'aria-current': undefined }}
            aria-current={one.id === tab ? 'page' : undefined}
          >
            {t(one.title)}
            {n > 0 && <span className="num">{n}</span>}
          </Link>
        )
      })}
    </nav>
  )
}
