/** Numbers, sizes, durations and times as people read them. Pure: locale and "now" are arguments. */

export type Words = number | string | null | undefined

/** Five significant digits, plain between 1e-4 and 1e6, else the exponent form; whole numbers in full. */
export function number(value: Words, digits = 5): string {
  if (value === null || value === undefined || value === '') return '–'
  if (typeof value === 'string') return nonFinite(value)
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞'
  if (Object.is(value, -0)) return '−0'
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 1e7) return minus(String(value))
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split('e')
    return minus(`${trim(mantissa ?? '')}e${(exponent ?? '').replace('+', '')}`)
  }
  return minus(trim(value.toPrecision(digits)))
}

function nonFinite(word: string): string {
  return word === 'Infinity' ? '∞' : word === '-Infinity' ? '−∞' : word
}

function trim(text: string): string {
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text
}

function minus(text: string): string {
  return text.replace(/^-/, '−').replace('e-', 'e−')
}

/** A metric's value in the unit that its name or definition tells: bytes are sizes, percents have their sign. */
export function measure(key: string, value: Words, digits = 5): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return number(value)
  if (/(^|[_/])bytes$/.test(key)) return minus(size(value))
  if (/(^|[_/])percent$/.test(key)) return `${number(value, digits)}%`
  return number(value, digits)
}

/** A count in the short form of the language: 12.3K, 1.2万. */
export function count(value: number, locale: string): string {
  const short = Math.abs(value) >= 10_000
  return new Intl.NumberFormat(locale, short ? { notation: 'compact', maximumFractionDigits: 1 } : {}).format(value)
}

export function size(bytes: number): string {
  let left = bytes
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (Math.abs(left) < 1024 || unit === 'TiB')
      return `${Number.isInteger(left) || unit === 'B' ? Math.round(left) : left.toFixed(1)} ${unit}`
    left /= 1024
  }
  return ''
}

/** `75.3` → `1m 15s`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return '–'
  if (seconds < 0) return duration(0)
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole}s`
  const pad = (n: number) => String(n).padStart(2, '0')
  const [d, h, m, s] = [
    Math.floor(whole / 86400),
    Math.floor(whole / 3600) % 24,
    Math.floor(whole / 60) % 60,
    whole % 60,
  ]
  if (d) return `${d}d ${pad(h)}h`
  if (h) return `${h}h ${pad(m)}m`
  return `${m}m ${pad(s)}s`
}

/** Card-hours with as many digits as mean something. */
export function cardHours(cardSeconds: number): string {
  const hours = cardSeconds / 3600
  return hours === 0 ? '0' : hours < 0.01 ? '<0.01' : hours < 10 ? hours.toFixed(2) : hours.toFixed(1)
}

export function moment(us: number, locale: string, zone?: string): string {
  const options: Intl.DateTimeFormatOptions = { dateStyle: 'medium', timeStyle: 'medium' }
  return new Intl.DateTimeFormat(locale, zone ? { ...options, timeZone: zone } : options).format(us / 1000)
}

export function clock(us: number, locale: string): string {
  return new Intl.DateTimeFormat(locale, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hour12: false,
  }).format(us / 1000)
}

/** "3 min ago" in the language; below five seconds "now". */
export function ago(us: number, nowMs: number, locale: string): string {
  const seconds = Math.round((us / 1000 - nowMs) / 1000)
  const form = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  const size = Math.abs(seconds)
  if (size < 5) return form.format(0, 'second')
  if (size < 60) return form.format(seconds, 'second')
  if (size < 3600) return form.format(Math.round(seconds / 60), 'minute')
  if (size < 86400) return form.format(Math.round(seconds / 3600), 'hour')
  return form.format(Math.round(seconds / 86400), 'day')
}

/** `b3:0123…` → `0123456789ab`, enough to tell digests apart by eye. */
export function shortDigest(digest: string): string {
  return digest.replace(/^b3:/, '').slice(0, 12)
}

/** Any value of a record as one line. */
export function plain(value: unknown): string {
  if (typeof value === 'number') return number(value, 8)
  if (typeof value === 'string') return value
  return JSON.stringify(value) ?? '–'
}
