import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useMemo, useRef } from 'react'
import uPlot from 'uplot'
import { locale } from '@/i18n'
import { measure } from '@/lib/format'
import { pen } from '@/lib/palette'
import css from './charts.module.css'
import { type Picture, spoken } from './picture'
import { type Look, options, xText } from './plot'

interface Props {
  name: string
  picture: Picture
  log: boolean
  clip: boolean
  x: Look['x']
  from: number | undefined
  to: number | undefined
  onZoom?: ((from: number, to: number) => void) | undefined
}

/** The one place that knows uPlot. New data moves the line and keeps zoom, hover and size. */
export function TimeSeries({ name, picture, log, clip, x, from, to, onZoom }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const tip = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const now = useRef({ picture, from, to, onZoom })
  now.current = { picture, from, to, onZoom }
  const dark = useComputedColorScheme('light') === 'dark'
  const shape = picture.lines.map((line) => `${line.label}${line.pen}${line.role}`).join('|')
  const look = useMemo<Look>(
    () => ({ name, dark, log, clip, x, locale: locale(), from: undefined, to: undefined }),
    [name, dark, log, clip, x],
  )

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new plot only for a new shape; data goes by setData
  useEffect(() => {
    const at = box.current!
    const size = () => ({ width: Math.max(80, at.clientWidth), height: Math.max(60, at.clientHeight) })
    const made = new uPlot(
      options(picture, look, size(), {
        onZoom: (a, b) => now.current.onZoom?.(a, b),
        onHover: (hovered) => showTip(hovered, tip.current, now.current.picture, look),
        latest: () => now.current.picture,
        range: () => [now.current.from, now.current.to],
      }),
      [picture.x, ...picture.columns] as uPlot.AlignedData,
      at,
    )
    plot.current = made
    const watcher = new ResizeObserver(() => made.setSize(size()))
    watcher.observe(at)
    return () => {
      watcher.disconnect()
      made.destroy()
      plot.current = null
    }
  }, [shape, look])

  // biome-ignore lint/correctness/useExhaustiveDependencies: zoom changes the scale through `now`
  useEffect(() => {
    plot.current?.setData([picture.x, ...picture.columns] as uPlot.AlignedData, true)
  }, [picture, from, to])

  return (
    <div className={css.plot} role="img" aria-label={spoken(name, picture, (value) => measure(name, value))}>
      <div ref={box} style={{ position: 'absolute', inset: 0 }} />
      <div ref={tip} className={css.tip} style={{ display: 'none' }} aria-hidden />
    </div>
  )
}

const TOLD = 10

/** The values under the cursor; plain DOM, so that a hundred charts can follow one mouse. */
function showTip(plot: uPlot, tip: HTMLDivElement | null, picture: Picture, look: Look): void {
  if (!tip) return
  const index = plot.cursor.idx
  const left = plot.cursor.left ?? -1
  if (index === null || index === undefined || left < 0) {
    tip.style.display = 'none'
    return
  }
  const rows = picture.lines
    .map((line, i) => ({ line, value: near(picture.columns[i] ?? [], index) }))
    .filter(({ line, value }) => (line.role === 'line' || line.role === 'raw') && value !== null)
  if (rows.length > TOLD) {
    // The curves next to the mouse are those that are asked about.
    const at = plot.posToVal(plot.cursor.top ?? 0, 'y')
    rows.sort((a, b) => Math.abs((a.value ?? 0) - at) - Math.abs((b.value ?? 0) - at))
    rows.length = TOLD
    rows.sort((a, b) => (b.value ?? 0) - (a.value ?? 0))
  }
  tip.replaceChildren(
    head(xText(picture.x[index] ?? 0, look)),
    ...rows.map(({ line, value }) =>
      row(line.label, pen(line.pen, look.dark).colour, line.role === 'raw' ? 0.35 : 1, measure(look.name, value, 6)),
    ),
  )
  tip.style.display = rows.length ? 'block' : 'none'
  const x = left + plot.bbox.left / devicePixelRatio
  const flip = x > plot.width * 0.6
  tip.style.left = flip ? '' : `${x + 14}px`
  tip.style.right = flip ? `${plot.width - x + 14}px` : ''
  tip.style.top = '14px'
}

function near(column: (number | null | undefined)[], index: number): number | null {
  for (let at = index; at >= Math.max(0, index - 30); at -= 1) {
    const value = column[at]
    if (typeof value === 'number') return value
    if (value === null) return null
  }
  return null
}

function head(text: string): HTMLElement {
  const line = document.createElement('div')
  line.className = 'dim'
  line.textContent = text
  return line
}

function row(label: string, colour: string, opacity: number, text: string): HTMLElement {
  const line = document.createElement('div')
  const mark = document.createElement('i')
  mark.style.background = colour
  mark.style.opacity = String(opacity)
  const strong = document.createElement('b')
  strong.textContent = text
  line.append(mark, label, strong)
  return line
}
