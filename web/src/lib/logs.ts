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
