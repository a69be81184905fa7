/** Markdown as blocks and spans, never as HTML: what a stranger wrote is shown as text or not at all. */

export type Span =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; spans: Span[] }
  | { kind: 'em'; spans: Span[] }
  | { kind: 'link'; spans: Span[]; to: string }

export interface Item {
  depth: number
  ordered: boolean
  spans: Span[]
}

export type Block =
  | { kind: 'heading'; level: number; spans: Span[] }
  | { kind: 'paragraph'; spans: Span[] }
  | { kind: 'code'; text: string; words: string }
  | { kind: 'list'; items: Item[] }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'table'; head: Span[][]; rows: Span[][][] }
  | { kind: 'rule' }

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/
const QUOTE = /^ {0,3}> ?(.*)$/
const DELIMITER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/
const DEEPEST = 8

export function blocks(text: string, depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  const found: Block[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at]!
    const fence = FENCE.exec(line)
    const heading = HEADING.exec(line)
    if (!line.trim()) at++
    else if (fence) {
      const end = lines.findIndex((one, i) => i > at && one.trim().startsWith(fence[1]!))
      const last = end < 0 ? lines.length : end
      found.push({ kind: 'code', text: lines.slice(at + 1, last).join('\n'), words: fence[2]!.trim() })
      at = last + 1
    } else if (heading) {
      found.push({ kind: 'heading', level: heading[1]!.length, spans: spans(heading[2]!) })
      at++
    } else if (RULE.test(line)) {
      found.push({ kind: 'rule' })
      at++
    } else if (QUOTE.test(line)) {
      const to = until(lines, at, (one) => !QUOTE.test(one))
      const inner = lines.slice(at, to).map((one) => QUOTE.exec(one)![1]!)
      found.push({ kind: 'quote', blocks: depth < DEEPEST ? blocks(inner.join('\n'), depth + 1) : [] })
      at = to
    } else if (ITEM.test(line)) {
      const to = until(lines, at, (one, i) => !one.trim() && !/^\s+\S|^\s*([-*+]|\d+[.)])\s/.test(lines[i + 1] ?? ''))
      found.push({ kind: 'list', items: items(lines.slice(at, to)) })
      at = to
    } else if (line.includes('|') && DELIMITER.test(lines[at + 1] ?? '')) {
      const to = until(lines, at + 2, (one) => !one.includes('|'))
      found.push({ kind: 'table', head: cells(line), rows: lines.slice(at + 2, to).map(cells) })
      at = to
    } else {
      const to = until(lines, at + 1, starts)
      found.push({ kind: 'paragraph', spans: spans(lines.slice(at, to).join('\n')) })
      at = to
    }
  }
  return found
}

function starts(line: string): boolean {
  return !line.trim() || [FENCE, HEADING, RULE, QUOTE, ITEM].some((form) => form.test(line))
}

function until(lines: string[], from: number, ends: (line: string, at: number) => boolean): number {
  let at = from
  while (at < lines.length && !ends(lines[at]!, at)) at++
  return at
}

function items(lines: string[]): Item[] {
  const texts: { depth: number; ordered: boolean; text: string }[] = []
  for (const line of lines) {
    const found = ITEM.exec(line)
    const last = texts.at(-1)
    if (found)
      texts.push({
        depth: Math.min(DEEPEST, Math.floor(found[1]!.replaceAll('\t', '    ').length / 2)),
        ordered: /\d/.test(found[2]!),
        text: found[3]!,
      })
    else if (last && line.trim()) last.text += `\n${line.trim()}`
  }
  return texts.map(({ text, ...rest }) => ({ ...rest, spans: spans(text) }))
}

function cells(line: string): Span[][] {
  return line
    .trim()
    .replace(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => spans(cell.trim().replaceAll('\\|', '|')))
}

const SPAN =
  /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|!?\[([^\]\n]*)\]\(([^()\s]*(?:\([^()\s]*\))?[^()\s]*)(?:\s+"[^"]*")?\)|<(https?:\/\/[^\s<>]+)>|\*\*(?=\S)([^\n]*?\S)\*\*|(?<![\w*])[*_](?=[^\s*_])([^*_\n]*?[^\s*_])[*_](?![\w*])|\\([!-/:-@[-`{-~])/

export function spans(text: string, depth = 0): Span[] {
  const found: Span[] = []
  let left = text
  while (left) {
    const hit = depth < DEEPEST ? SPAN.exec(left) : null
    if (!hit) return push(found, left)
    push(found, left.slice(0, hit.index))
    const [whole, , code, label, to, address, strong, em, escaped] = hit
    if (code !== undefined) found.push({ kind: 'code', text: code.trim() })
    else if (to !== undefined) {
      const inner = spans(label ?? '', depth + 1)
      // a picture is its words: nothing is fetched from anywhere by looking
      if (whole.startsWith('!') || !safe(to)) found.push(...inner)
      else found.push({ kind: 'link', spans: inner, to })
    } else if (address !== undefined)
      found.push({ kind: 'link', spans: [{ kind: 'text', text: address }], to: address })
    else if (strong !== undefined) found.push({ kind: 'strong', spans: spans(strong, depth + 1) })
    else if (em !== undefined) found.push({ kind: 'em', spans: spans(em, depth + 1) })
    else push(found, escaped ?? '')
    left = left.slice(hit.index + whole.length)
  }
  return found
}

function push(found: Span[], text: string): Span[] {
  if (text) found.push({ kind: 'text', text })
  return found
}

/** Only the web, mail and places in the same tree may be linked: no `javascript:` and no `data:`. */
export function safe(to: string): boolean {
  return /^(https?:\/\/|mailto:)/i.test(to) || (to !== '' && !/^[^/?#]*:/.test(to) && !to.startsWith('//'))
}

/** The path in the tree that a link of a document means; empty where it leads out of it. */
export function target(document: string, to: string): string {
  const [path = ''] = to.split(/[?#]/)
  if (!path || /^[^/]*:/.test(path)) return ''
  const parts = path.startsWith('/') ? [] : document.split('/').slice(0, -1)
  for (const part of path.split('/')) {
    if (part === '..') {
      if (parts.length === 0) return ''
      parts.pop()
    } else if (part && part !== '.') parts.push(part)
  }
  return parts.join('/')
}
