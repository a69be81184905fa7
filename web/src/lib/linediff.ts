/** Two texts as one patch, three lines of context around each change. Pure. */

const CONTEXT = 3
/** Above this many pairs of lines the middle is shown as replaced: a finer answer would hold the page up. */
const MOST_PAIRS = 4_000_000

type Edit = [' ' | '+' | '-', string]

export function linePatch(before: string, after: string, path: string): string {
  const edits = compare(lines(before), lines(after))
  const parts = hunks(edits)
  return parts.length ? [`diff --git a/${path} b/${path}`, ...parts.flat()].join('\n') : ''
}

function lines(text: string): string[] {
  const all = text.split('\n')
  if (all.at(-1) === '') all.pop()
  return all
}

function compare(a: string[], b: string[]): Edit[] {
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail += 1
  const same = (text: string): Edit => [' ', text]
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ]
}

/** Longest common subsequence, walked from the front. */
function middle(a: string[], b: string[]): Edit[] {
  if (a.length * b.length > MOST_PAIRS || !a.length || !b.length)
    return [...a.map((text): Edit => ['-', text]), ...b.map((text): Edit => ['+', text])]
  const width = b.length + 1
  const best = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      best[i * width + j] =
        a[i] === b[j]
          ? best[(i + 1) * width + j + 1]! + 1
          : Math.max(best[(i + 1) * width + j]!, best[i * width + j + 1]!)
  const edits: Edit[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      edits.push([' ', a[i]!])
      i += 1
      j += 1
    } else if (j >= b.length || (i < a.length && best[(i + 1) * width + j]! >= best[i * width + j + 1]!)) {
      edits.push(['-', a[i]!])
      i += 1
    } else {
      edits.push(['+', b[j]!])
      j += 1
    }
  }
  return edits
}

function hunks(edits: Edit[]): string[][] {
  const near = new Uint8Array(edits.length)
  edits.forEach(([kind], at) => {
    if (kind !== ' ') near.fill(1, Math.max(0, at - CONTEXT), at + CONTEXT + 1)
  })
  const found: string[][] = []
  let [old, now] = [1, 1]
  for (let at = 0; at < edits.length; ) {
    if (!near[at]) {
      old += 1
      now += 1
      at += 1
      continue
    }
    let end = at
    while (end < edits.length && near[end]) end += 1
    const part = edits.slice(at, end)
    const [was, is] = [part.filter(([kind]) => kind !== '+').length, part.filter(([kind]) => kind !== '-').length]
    found.push([`@@ -${old},${was} +${now},${is} @@`, ...part.map(([kind, text]) => kind + text)])
    old += was
    now += is
    at = end
  }
  return found
}
