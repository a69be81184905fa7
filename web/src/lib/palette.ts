/** Colours of curves: Okabe-Ito-like, one set per theme, told apart by dashes from the ninth on. */

const LIGHT = ['#2f5fd0', '#c2480c', '#0b7f63', '#a3348f', '#8a6100', '#0d7ea8', '#b3263b', '#5a5f69']
const DARK = ['#7aa2ff', '#ff9d5c', '#45d1a8', '#e58ad6', '#e6c04c', '#5cc8f2', '#ff7d8f', '#b7bdc8']

export interface Pen {
  colour: string
  dash: number[]
}

export function pen(index: number, dark: boolean): Pen {
  const set = dark ? DARK : LIGHT
  const turn = Math.floor(index / set.length) % 4
  return { colour: set[index % set.length]!, dash: [[], [6, 4], [2, 3], [8, 3, 2, 3]][turn]! }
}

/** The same colour, thinner: for the raw line behind a smoothed one and for bands. */
export function faint(colour: string, alpha: number): string {
  const part = (at: number) => Number.parseInt(colour.slice(at, at + 2), 16)
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`
}

/** Contrast of two colours by WCAG 2; 4.5 is the least for text, 3 for lines. */
export function contrast(a: string, b: string): number {
  const [one, two] = [luminance(a), luminance(b)]
  return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05)
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}
