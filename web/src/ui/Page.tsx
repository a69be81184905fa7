import type { ReactNode } from 'react'
import css from './page.module.css'

interface Props {
  title: ReactNode
  note?: ReactNode
  actions?: ReactNode
  children: ReactNode
  ready?: boolean
}

/** The frame of a page that scrolls as a whole. */
export function Page({ title, note, actions, children, ready = true }: Props) {
  return (
    <div className={css.page} data-ready={ready || undefined}>
      <header className={css.head}>
        <div>
          <h1>{title}</h1>
          {note && <div className="dim">{note}</div>}
        </div>
        {actions}
      </header>
      <div className={css.stack}>{children}</div>
    </div>
  )
}
