import { Checkbox } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import type { RunView } from '@/api/types'
import { Head } from './Head'
import type { RunColumn } from './runColumns'
import css from './runs.module.css'
import { useWidths } from './widths'

const ROW = 36

interface Props {
  runs: RunView[]
  total: number
  columns: RunColumn[]
  order: string
  descending: boolean
  onSort: (order: string) => void
  chosen: Set<string>
  onChoose: (ids: string[], on: boolean) => void
  active: number
  onEnd: () => void
}

/** Only the rows in sight are in the page; more are asked for before the last one shows. */
export function RunsGrid(props: Props) {
  const { runs, columns, chosen, onChoose, active, onEnd } = props
  const { t } = useTranslation()
  const scroll = useRef<HTMLDivElement>(null)
  const { widths, setWidth } = useWidths()
  const rows = useVirtualizer({
    count: runs.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: 40,
  })
  const items = rows.getVirtualItems()
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (runs.length > 0 && last >= runs.length - 20) onEnd()
  }, [last, runs.length, onEnd])
  useEffect(() => {
    if (active >= 0) rows.scrollToIndex(active)
  }, [active, rows])
  const { template, least } = useMemo(() => layout(columns, widths), [columns, widths])
  return (
    <div
      className={css.grid}
      ref={scroll}
      role="table"
      aria-label={t('nav_runs')}
      aria-rowcount={props.total}
      tabIndex={0}
    >
      <Head
        columns={columns}
        template={template}
        least={least}
        order={props.order}
        descending={props.descending}
        onSort={props.onSort}
        onWidth={setWidth}
        all={runs.length > 0 && runs.every((run) => chosen.has(run.id))}
        some={chosen.size > 0}
        onAll={() =>
          onChoose(
            runs.map((run) => run.id),
            !runs.every((run) => chosen.has(run.id)),
          )
        }
      />
      <div role="rowgroup" style={{ height: rows.getTotalSize(), position: 'relative', minWidth: least }}>
        {items.map(({ index, start }) => {
          const run = runs[index]!
          return (
            <Row
              key={run.id}
              run={run}
              columns={columns}
              template={template}
              top={start}
              index={index}
              active={index === active}
              chosen={chosen.has(run.id)}
              onChoose={onChoose}
            />
          )
        })}
      </div>
    </div>
  )
}

/** Columns in pixels; the name takes what is left over. */
function layout(columns: RunColumn[], widths: Record<string, number>): { template: string; least: number } {
  const sizes = columns.map((column) => widths[column.id] ?? column.width)
  const parts = columns.map((column, i) =>
    column.id === 'name' && !widths.name ? `minmax(${sizes[i]}px, 1fr)` : `${sizes[i]}px`,
  )
  return { template: `44px ${parts.join(' ')} 10px`, least: sizes.reduce((sum, width) => sum + width, 54) }
}

interface RowProps {
  run: RunView
  columns: RunColumn[]
  template: string
  top: number
  index: number
  active: boolean
  chosen: boolean
  onChoose: (ids: string[], on: boolean) => void
}

function Row({ run, columns, template, top, index, active, chosen, onChoose }: RowProps) {
  const { t } = useTranslation()
  const navigate = useNavigate()
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the link in the row and the keys j, k, Enter do the same
    <div
      className={css.row}
      role="row"
      aria-rowindex={index + 2}
      data-active={active}
      data-chosen={chosen}
      data-run={run.id}
      style={{ transform: `translateY(${top}px)`, gridTemplateColumns: template }}
      onClick={(event) => {
        if ((event.target as HTMLElement).closest('a, input, button, label')) return
        void navigate({ to: '/runs/$run', params: { run: run.id } })
      }}
    >
      <div className={css.check} role="cell">
        <Checkbox
          size="xs"
          aria-label={t('select_run', { run: run.ref })}
          checked={chosen}
          onChange={() => onChoose([run.id], !chosen)}
        />
      </div>
      {columns.map((column) => (
        <div key={column.id} role="cell" className={`${css.cell} ${column.right ? css.right : ''}`}>
          {column.cell(run)}
        </div>
      ))}
    </div>
  )
}
