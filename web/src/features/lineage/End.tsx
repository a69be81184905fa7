import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { LineageView } from '@/api/types'

/** `run:run_…`, `data:name@3`, `model:name@1`, `tree:b3:…` → kind and the rest. */
export function parse(id: string): { kind: string; rest: string } {
  const cut = id.indexOf(':')
  return { kind: id.slice(0, cut), rest: id.slice(cut + 1) }
}

export function labelOf(view: LineageView, id: string): string {
  const label = view.nodes?.[id]?.label
  if (typeof label === 'string' && label) return label
  const { rest } = parse(id)
  return rest.startsWith('b3:') ? rest.slice(3, 15) : rest
}

interface Props {
  id: string
  label: string
  className?: string | undefined
  style?: React.CSSProperties
  root?: boolean
  children?: ReactNode
}

/** A thing of the lineage, as a link to its page where it has one. */
export function End({ id, label, className, style, root, children }: Props) {
  const { kind, rest } = parse(id)
  const name = rest.split('@')[0] ?? rest
  const look = { className, style, 'data-root': root }
  const inner = children ?? label
  if (kind === 'run')
    return (
      <Link to="/runs/$run" params={{ run: rest }} {...look}>
        {inner}
      </Link>
    )
  if (kind === 'data')
    return (
      <Link to="/datasets/$name" params={{ name: name.split('/').at(-1) ?? name }} {...look}>
        {inner}
      </Link>
    )
  if (kind === 'model')
    return (
      <Link to="/models/$name" params={{ name: name.split('/').at(-1) ?? name }} {...look}>
        {inner}
      </Link>
    )
  return <span {...look}>{inner}</span>
}
