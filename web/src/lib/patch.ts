/** A text diff as lines to draw. */

export type PatchKind = 'file' | 'hunk' | 'add' | 'remove' | 'same' | 'note'

export interface PatchLine {
  kind: PatchKind
  text: string
}

export function patchLines(patch: string): PatchLine[] {
  let inHunk = false
  return patch
    .replace(/\n$/, '')
    .split('\n')
    .map((text) => {
      if (text.startsWith('diff ')) {
        inHunk = false
        return { kind: 'file', text: text.replace(/^diff --git a\/(.*) b\/\1$/, '$1') }
      }
      if (text.startsWith('@@')) {
        inHunk = true
        return { kind: 'hunk', text }
      }
      if (!inHunk) return { kind: 'note', text }
      if (text.startsWith('+')) return { kind: 'add', text }
      if (text.startsWith('-')) return { kind: 'remove', text }
      return { kind: text.startsWith('\\') ? 'note' : 'same', text }
    })
}

export function patchCounts(lines: PatchLine[]): { added: number; removed: number } {
  return {
    added: lines.filter((line) => line.kind === 'add').length,
    removed: lines.filter((line) => line.kind === 'remove').length,
  }
}
