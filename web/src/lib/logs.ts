/** Log text as it is drawn: escape sequences of terminals are left out, the text itself is never cut. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are control characters
const ESCAPES = /\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*(?:\u0007|\u001b\\)/g

export function clean(text: string): string {
  return text.replace(ESCAPES, '')
}

/** Cut a line into parts that match and parts that do not; case is ignored. An invalid pattern matches nothing. */
export function highlight(text: string, needle: string): { text: string; hit: boolean }[] {
  if (!needle) return [{ text, hit: false }]
  const parts: { text: string; hit: boolean }[] = []
  const low = text.toLowerCase()
  const what = needle.toLowerCase()
  let at = 0
  while (at < text.length) {
    const found = low.indexOf(what, at)
    if (found < 0) break
    if (found > at) parts.push({ text: text.slice(at, found), hit: false })
    parts.push({ text: text.slice(found, found + what.length), hit: true })
    at = found + what.length
  }
  if (at < text.length || parts.length === 0) parts.push({ text: text.slice(at), hit: false })
  return parts
}

/** Two pages of lines as one; a line that came with both (it arrived late) is taken once. */
export function joined<T extends { id: string }>(front: T[], behind: T[]): T[] {
  const ids = new Set(front.map((line) => line.id))
  return [...front, ...behind.filter((line) => !ids.has(line.id))]
}

/** How many lines were put in front of those that were there; 0 where these are other lines. */
export function putInFront(was: { id: string }[], now: { id: string }[]): number {
  const first = was[0]?.id
  const at = first === undefined || first === now[0]?.id ? 0 : now.findIndex((line) => line.id === first)
  return at > 0 && now[at + was.length - 1]?.id === was.at(-1)?.id ? at : 0
}
