/** Metrics that a person pinned to the top: in the address where it says so, else as this browser remembers. */

const STORE = 'trackbed.pins'

export function readPins(text: string | undefined): string[] {
  const kept = text ?? localStorage.getItem(STORE) ?? ''
  return kept.split(',').filter(Boolean).map(decoded)
}

export function writePins(keys: string[]): string {
  const text = keys.map(encodeURIComponent).join(',')
  localStorage.setItem(STORE, text)
  return text
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
