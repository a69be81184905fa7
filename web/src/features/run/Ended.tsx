import { type CSSProperties, useEffect, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunDetail } from '@/api/types'
import { sentence, word } from '@/i18n'
import { plain } from '@/lib/format'
import { clean } from '@/lib/logs'
import { tone } from '@/lib/states'
import css from './run.module.css'

const SHOWN = /lines|tail|stderr|^ranks$|^first_rank$|^exit_code$|^exit_status$/

interface RankEnd {
  rank?: number
  exit_code?: number | null
  signal?: number | null
}

/** Why a run failed, with the evidence of its last attempt: exit codes, signal, last lines. */
export function Ended({ detail }: { detail: RunDetail }) {
  const { t } = useTranslation()
  const { run } = detail
  const last = detail.attempts?.at(-1)
  if (run.state !== 'failed' || !run.cause) return null
  const evidence = Object.entries(last?.evidence ?? {})
  const lines = evidence.find(([name]) => /lines|tail|stderr/.test(name))?.[1]
  const ranks = (last?.evidence?.ranks ?? []) as RankEnd[]
  const facts = evidence.filter(([name, value]) => !SHOWN.test(name) && value !== null && value !== '')
  const reason = run.reason ?? last?.reason
  return (
    <section className={css.callout} style={{ '--tone': `var(--tone-${tone(run.state)})` } as CSSProperties}>
      <h2>{word('cause', run.cause)}</h2>
      {reason && <div>{sentence(`reason.${reason.code}`, reason.params)}</div>}
      {Array.isArray(ranks) && ranks.length > 0 && (
        <div className={css.ranks}>
          {ranks.map((one) => (
            <span key={one.rank}>
              {t('rank_n', { n: one.rank ?? 0 })}{' '}
              {typeof one.signal === 'number'
                ? t('signal_n', { n: one.signal })
                : t('exit_n', { n: one.exit_code ?? '?' })}
            </span>
          ))}
        </div>
      )}
      {facts.length > 0 && (
        <div className={css.ranks}>
          {facts.map(([name, value]) => (
            <span key={name}>
              <span className="dim">{name}</span> {plain(value)}
            </span>
          ))}
        </div>
      )}
      {lines !== undefined && <Tail text={Array.isArray(lines) ? lines.map(String).join('\n') : String(lines)} />}
    </section>
  )
}

/** The end of the log, opened at its end: that is where the fault stands. */
function Tail({ text }: { text: string }) {
  const { t } = useTranslation()
  const box = useRef<HTMLPreElement>(null)
  useEffect(() => {
    box.current?.scrollTo({ top: box.current.scrollHeight })
  }, [])
  return (
    <pre className={css.pre} ref={box} tabIndex={0} role="region" aria-label={t('last_lines')}>
      {clean(text)}
    </pre>
  )
}
