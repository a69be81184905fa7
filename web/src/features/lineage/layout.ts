/** Where the boxes of a lineage stand: causes left, results right, the run that was asked for between them. Pure. */

import type { LineageEdge, LineageView } from '@/api/types'

export interface Box {
  id: string
  column: number
  row: number
}

export function layout(view: LineageView): { boxes: Box[]; columns: number; rows: number } {
  const column = new Map<string, number>([[view.root, 0]])
  const ids = new Set([
    view.root,
    ...Object.keys(view.nodes ?? {}),
    ...(view.edges ?? []).flatMap((e) => [e.source, e.target]),
  ])
  spread(view.edges ?? [], column)
  for (const id of ids) if (!column.has(id)) column.set(id, 0)
  const least = Math.min(...column.values())
  const filled = new Map<number, number>()
  const boxes = [...ids].map((id) => {
    const at = column.get(id)! - least
    const row = filled.get(at) ?? 0
    filled.set(at, row + 1)
    return { id, column: at, row }
  })
  return { boxes, columns: filled.size, rows: Math.max(...filled.values()) }
}

/** What leads to a thing stands one column before it. */
function spread(edges: LineageEdge[], column: Map<string, number>): void {
  for (let turn = 0; turn < edges.length + 1; turn += 1) {
    let moved = false
    for (const edge of edges) {
      const [before, after] = ends(edge)
      const a = column.get(before)
      const b = column.get(after)
      if (a === undefined && b !== undefined) column.set(before, b - 1)
      else if (b === undefined && a !== undefined) column.set(after, a + 1)
      else continue
      moved = true
    }
    if (!moved) return
  }
}

/** [cause, result] of an edge. Edges go from cause to result, but for a reproduction, which points at what it repeats. */
export function ends(edge: LineageEdge): [string, string] {
  return edge.kind === 'reproduces' ? [edge.target, edge.source] : [edge.source, edge.target]
}
