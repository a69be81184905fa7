import { CircleAlert } from 'lucide-react'
import { Fragment, type ReactNode, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ApiError } from '@/api/client'
import { fill, sentence } from '@/i18n'
import { Command } from './Copy'
import css from './ui.module.css'

interface PanelProps {
  title?: ReactNode
  actions?: ReactNode
  flush?: boolean
  children: ReactNode
}

export function Panel({ title, actions, flush = false, children }: PanelProps) {
  return (
    <section className={css.panel}>
      {(title || actions) && (
        <div className={css.panelHead}>
          <h2 className={css.panelTitle}>{title}</h2>
          {actions}
        </div>
      )}
      <div className={flush ? css.scroll : css.panelBody}>{children}</div>
    </section>
  )
}

/** Names and values; rows without a value are left out. */
export function Facts({ rows }: { rows: [ReactNode, ReactNode][] }) {
  return (
    <dl className={css.facts}>
      {rows.map(([name, value], i) =>
        value === undefined || value === null || value === '' || value === false ? null : (
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a record do not move
          <Fragment key={i}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
      )}
    </dl>
  )
}

interface EmptyProps {
  title: string
  children?: ReactNode
  command?: string
}

/** Nothing here yet, and what to do about it. */
export function Empty({ title, children, command }: EmptyProps) {
  return (
    <div className={css.empty}>
      <div className={css.emptyTitle}>{title}</div>
      {children && <div>{children}</div>}
      {command && (
        <div style={{ marginTop: 10, maxWidth: '100%' }}>
          <Command text={command} />
        </div>
      )}
    </div>
  )
}

/** The sentence of an error: what happened, then the way out; one line a fault. */
export function errorText(error: unknown): string {
  if (!(error instanceof ApiError)) return String((error as Error)?.message ?? error)
  return sentence(error.code, error.params)
}

export function ErrorNote({ error }: { error: unknown }) {
  const { t } = useTranslation()
  const faults = error instanceof ApiError ? error.faults : []
  const own = error instanceof ApiError && error.code.startsWith('web.')
  const text = own
    ? fill(t(error.code === 'web.unreachable' ? 'error_unreachable' : 'error_strange'), error.params)
    : errorText(error)
  return (
    <div className={css.error} role="alert">
      <CircleAlert size={15} aria-hidden />
      <div>
        {text}
        {faults.map((fault) => (
          <div key={`${fault.field}${fault.code}`}>
            {fault.field && <span className="mono">{fault.field}: </span>}
            {sentence(fault.code, fault.params)}
          </div>
        ))}
      </div>
    </div>
  )
}

/** Words of waiting, shown only when the wait is long enough to be noticed. */
export function Waiting({ rows = 3 }: { rows?: number }) {
  const { t } = useTranslation()
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 300)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div aria-busy="true" style={{ minHeight: rows * 24, padding: 14 }} className="dim">
      {shown && t('loading')}
    </div>
  )
}

interface AsyncProps<T> {
  query: { data: T | undefined; error: unknown; isPending: boolean }
  children: (data: T) => ReactNode
}

/** Old data stays visible while new data loads; an error is shown beside it, never instead of it. */
export function Async<T>({ query, children }: AsyncProps<T>) {
  if (query.data === undefined) return query.error ? <ErrorNote error={query.error} /> : <Waiting />
  return (
    <>
      {Boolean(query.error) && <ErrorNote error={query.error} />}
      {children(query.data)}
    </>
  )
}
