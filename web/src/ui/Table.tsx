import type { ReactNode } from 'react'
import css from './ui.module.css'

export interface Column<T> {
  id: string
  title: ReactNode
  right?: boolean
  cell: (row: T) => ReactNode
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  rows: T[]
  rowKey: (row: T) => string
}

/** A plain table for lists of a page; the runs table has a virtual one of its own. */
export function Table<T>({ label, columns, rows, rowKey }: Props<T>) {
  return (
    <table className={css.table} aria-label={label}>
      <thead>
        <tr>
          {columns.map((column) =>
            column.title === '' ? (
              <td key={column.id} />
            ) : (
              <th key={column.id} scope="col" className={column.right ? css.right : undefined}>
                {column.title}
              </th>
            ),
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={rowKey(row)}>
            {columns.map((column) => (
              <td key={column.id} className={column.right ? css.right : undefined}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}
