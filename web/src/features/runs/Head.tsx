import { Checkbox } from '@mantine/core'
import { ArrowDown, ArrowUp } from 'lucide-react'
import type { PointerEvent } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunColumn } from './runColumns'
import css from './runs.module.css'

interface Props {
  columns: RunColumn[]
  template: string
  least: number
  order: string
  descending: boolean
  onSort: (order: string) => void
  onWidth: (id: string, width: number) => void
  all: boolean
  some: boolean
  onAll: () => void
}

export function Head({ columns, template, least, order, descending, onSort, onWidth, all, some, onAll }: Props) {
  const { t } = useTranslation()
  return (
    <div className={css.head} role="row" style={{ gridTemplateColumns: template, minWidth: least }}>
      <div className={css.check} role="columnheader">
        <Checkbox size="xs" aria-label={t('select_all')} checked={all} indeterminate={some && !all} onChange={onAll} />
      </div>
      {columns.map((column) => {
        const on = Boolean(column.order) && column.order === order
        const title = column.title ? t(column.title) : column.id.replace(/^(metrics|params)\./, '')
        return (
          <div
            key={column.id}
            className={css.headCell}
            role="columnheader"
            aria-sort={on ? (descending ? 'descending' : 'ascending') : column.order ? 'none' : undefined}
          >
            {column.order ? (
              <button
                type="button"
                className={`${css.sort} ${column.right ? css.right : ''}`}
                data-on={on}
                title={column.id.includes('.') ? column.id : undefined}
                onClick={() => onSort(column.order!)}
              >
                <span className="cut">{title}</span>
                {on && (descending ? <ArrowDown size={12} aria-hidden /> : <ArrowUp size={12} aria-hidden />)}
              </button>
            ) : (
              <span className={`${css.sort} ${column.right ? css.right : ''}`} style={{ cursor: 'default' }}>
                <span className="cut">{title}</span>
              </span>
            )}
            <span
              className={css.grip}
              onPointerDown={(event) => drag(event, (width) => onWidth(column.id, width))}
              aria-hidden
            />
          </div>
        )
      })}
    </div>
  )
}

function drag(event: PointerEvent<HTMLElement>, onWidth: (width: number) => void): void {
  event.preventDefault()
  const grip = event.currentTarget
  const start = event.clientX
  const width = grip.parentElement!.getBoundingClientRect().width
  grip.setPointerCapture(event.pointerId)
  grip.onpointermove = (move) => onWidth(Math.max(56, Math.round(width + move.clientX - start)))
  grip.onpointerup = () => {
    grip.onpointermove = null
    grip.onpointerup = null
  }
}
