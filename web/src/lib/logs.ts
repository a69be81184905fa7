/** Log text as it is drawn: colours of terminals stay colours, other escape sequences are left out, the text is never cut. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are control characters
const ESCAPES = /\u001b\[([0-9;?]*)([A-Za-z])|\u001b\][^\u0007]*(?:\u0007|\u001b\\)/g

/** `colour` is one of the eight of terminals, 0 to 7, or null for the text's own. */
export interface Painted {
  text: string
  colour: number | null
  bold: boolean
}

export function clean(text: string): string {
  return text.replace(ESCAPES, '')
}

export function paint(text: string): Painted[] {
  const parts: Painted[] = []
  let pen: Omit<Painted, 'text'> = { colour: null, bold: false }
  let at = 0
  const add = (upTo: number) => {
    if (upTo > at) parts.push({ text: text.slice(at, upTo), ...pen })
  }
  for (const found of text.matchAll(ESCAPES)) {
    add(found.index)
    at = found.index + found[0].length
    if (found[2] === 'm') pen = turned(pen, (found[1] ?? '').split(';').map(Number))
  }
  add(text.length)
  return parts
}

/** A line with its colours: the server sends the bytes along where it left escape sequences out of the text. */
export function coloured(line: { text: string; raw?: string }): string {
  if (!line.raw) return line.text
  const bytes = Uint8Array.from(atob(line.raw), (char) => char.charCodeAt(0))
  const text = new TextDecoder().decode(bytes)
  return clean(text) === line.text ? text : line.text
}

function turned(pen: Omit<Painted, 'text'>, codes: number[]): Omit<Painted, 'text'> {
  let { colour, bold } = pen
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i]!
    if (code === 0) [colour, bold] = [null, false]
    else if (code === 1) bold = true
    else if (code === 22) bold = false
    else if (code >= 30 && code <= 37) colour = code - 30
    else if (code >= 90 && code <= 97) colour = code - 90
    else if (code === 39) colour = null
    else if ((code === 38 || code === 48) && codes[i + 1] === 5) {
      if (code === 38) colour = ofTable(codes[i + 2] ?? 0)
      i += 2
    } else if ((code === 38 || code === 48) && codes[i + 1] === 2) {
      if (code === 38) colour = nearest(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0)
      i += 4
    }
  }
  return { colour, bold }
}

function ofTable(n: number): number | null {
  if (n < 16) return n % 8
  if (n >= 232) return null
  const level = (step: number) => (step % 6) * 51
  return nearest(level(Math.floor((n - 16) / 36)), level(Math.floor((n - 16) / 6)), level(n - 16))
}

/** The one of the eight that a mixed colour is most like. */
function nearest(r: number, g: number, b: number): number | null {
  const most = Math.max(r, g, b)
  const on = (part: number) => (part > most * 0.66 && part > 60 ? 1 : 0)
  const index = on(r) | (on(g) << 1) | (on(b) << 2)
  return index === 7 || index === 0 ? null : index
}

/** Cut a line into parts that match and parts that do not; case is ignored. What is no pattern is looked for as it stands. */
export function highlight(text: string, needle: string): { text: string; hit: boolean }[] {
  if (!needle) return [{ text, hit: false }]
  const parts: { text: string; hit: boolean }[] = []
  let at = 0
  for (const found of text.matchAll(pattern(needle))) {
    if (!found[0]) continue
    if (found.index > at) parts.push({ text: text.slice(at, found.index), hit: false })
    parts.push({ text: found[0], hit: true })
    at = found.index + found[0].length
  }
  if (at < text.length || parts.length === 0) parts.push({ text: text.slice(at), hit: false })
  return parts
}

function pattern(needle: string): RegExp {
  try {
    return new RegExp(needle, 'gi')
  } catch {
    return new RegExp(needle.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi')
  }
}

/** A late line stands among the last ones: looking through a million for each new page would hold the page up. */
const NEAR = 10_000

/** Two pages of lines as one; a line that came with both (it arrived late) is taken once. */
export function joined<T extends { id: string }>(front: T[], behind: T[]): T[] {
  const ids = new Set(front.slice(-NEAR).map((line) => line.id))
  return [...front, ...behind.filter((line) => !ids.has(line.id))]
}

/** How many lines were put in front of those that were there; 0 where these are other lines. */
export function putInFront(was: { id: string }[], now: { id: string }[]): number {
  const first = was[0]?.id
  const at = first === undefined || first === now[0]?.id ? 0 : now.findIndex((line) => line.id === first)
  return at > 0 && now[at + was.length - 1]?.id === was.at(-1)?.id ? at : 0
}
