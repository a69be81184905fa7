/** uPlot options of a metric: lines over bands, marks for what is not finite, one cursor over all charts of a page. */

import type uPlot from 'uplot'
import { clock, duration, measure, number } from '@/lib/format'
import { faint, pen } from '@/lib/palette'
import { extent, type Mark } from '@/lib/series'
import type { Picture, Span } from './picture'

export interface Look {
  name: string
  dark: boolean
  log: boolean
  clip: boolean
  x: string
  locale: string
  from: number | undefined
  to: number | undefined
}

const INK = { light: { axis: '#565e6d', grid: '#eceef2' }, dark: { axis: '#a0a8b7', grid: '#222833' } }

export function options(
  picture: Picture,
  look: Look,
  size: { width: number; height: number },
  hooks: {
    onZoom: (from: number, to: number) => void
    onHover: (plot: uPlot) => void
    latest: () => Picture
    range: () => [number?, number?]
  },
): uPlot.Options {
  const ink = INK[look.dark ? 'dark' : 'light']
  const font = '11px system-ui, sans-serif'
  return {
    ...size,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    focus: { alpha: 0.35 },
    cursor: {
      sync: { key: 'trackbed', setSeries: false, scales: ['x', null] },
      drag: { x: true, y: false, setScale: false, uni: 20 },
      points: { size: 6 },
      focus: { prox: picture.lines.filter((line) => line.role === 'line').length > 1 ? 16 : -1 },
    },
    scales: {
      x: { time: false, range: (_, low, high) => xRange(hooks.range(), low, high) },
      y: { distr: look.log ? 3 : 1, range: () => extent(hooks.latest().columns, look.log, look.clip) },
    },
    axes: [
      {
        stroke: ink.axis, font, size: 28, gap: 4, space: 60,
        grid: { show: false }, ticks: { stroke: ink.grid, size: 4, width: 1 },
        values: (_, ticks) => ticks.map((tick) => xText(tick, look)),
      },
      {
        stroke: ink.axis, font, gap: 4, space: 30, size: ySize,
        grid: { stroke: ink.grid, width: 1 }, ticks: { show: false },
        values: (_, ticks) => ticks.map((tick) => (tick === null ? '' : measure(look.name, tick, 4))),
      },
    ],
    series: [{}, ...picture.lines.map((line) => lineLook(line, look.dark))],
    bands: bands(picture, look.dark),
    hooks: {
      setCursor: [hooks.onHover],
      drawClear: [(plot) => drawSpans(plot, hooks.latest().spans, look.dark)],
      draw: [(plot) => drawMarks(plot, hooks.latest().marks, look.dark)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < 4) return
          hooks.onZoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'))
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
        },
      ],
    },
  } // biome-ignore format: options read best in groups
}

function xRange([from, to]: [number?, number?], low: number, high: number): [number, number] {
  const a = from ?? low ?? 0
  const b = to ?? high ?? 1
  return a === b ? [a - 0.5, b + 0.5] : [a, b]
}

function ySize(_: uPlot, values: string[] | null): number {
  const longest = Math.max(3, ...(values ?? []).map((text) => text.length))
  return 14 + longest * 6.3
}

/** A value of the x axis; another metric is written in its own unit. */
export function xText(value: number, look: Pick<Look, 'x' | 'locale'>): string {
  if (look.x === 'relative') return duration(value)
  if (look.x === 'wall') return clock(value * 1e6, look.locale)
  if (look.x.startsWith('metrics.')) return measure(look.x.slice(8), value, 4)
  return number(value)
}

function lineLook(line: Picture['lines'][number], dark: boolean): uPlot.Series {
  const { colour, dash } = pen(line.pen, dark)
  const still = { points: { show: false }, spanGaps: true }
  if (line.role === 'low' || line.role === 'high') return { ...still, stroke: 'transparent', width: 0 }
  if (line.role === 'raw') return { ...still, stroke: faint(colour, 0.3), width: 1 }
  return {
    label: line.label,
    stroke: colour,
    width: 1.6,
    dash,
    spanGaps: true,
    points: { size: 5, fill: colour, filter: lonely },
  }
}

/** Points are drawn where a line cannot be: alone between gaps, or when there are few. */
function lonely(plot: uPlot, index: number, show: boolean): number[] | null {
  const column = Array.from(plot.data[index] ?? [])
  const found: number[] = []
  let n = 0
  column.forEach((value, i) => {
    if (typeof value !== 'number') return
    n += 1
    if (typeof column[i - 1] !== 'number' && typeof column[i + 1] !== 'number') found.push(i)
  })
  return n < 3 || show
    ? n <= 40
      ? column.flatMap((value, i) => (typeof value === 'number' ? [i] : []))
      : found
    : found
}

function bands(picture: Picture, dark: boolean): uPlot.Band[] {
  const found: uPlot.Band[] = []
  picture.lines.forEach((line, i) => {
    if (line.role === 'high') found.push({ series: [i + 1, i], fill: faint(pen(line.pen, dark).colour, 0.14) })
  })
  return found
}

/** Where something was noticed the ground is tinted, with a line at its beginning. */
function drawSpans(plot: uPlot, spans: Span[], dark: boolean): void {
  const { ctx, bbox } = plot
  const least = 2 * (globalThis.devicePixelRatio || 1)
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  for (const span of spans) {
    const from = plot.valToPos(span.from, 'x', true)
    const to = plot.valToPos(span.to, 'x', true)
    const colour = dark ? '#ffab73' : '#a8470a'
    ctx.fillStyle = faint(colour, span.open ? 0.18 : 0.1)
    ctx.fillRect(from, bbox.top, Math.max(to - from, least), bbox.height)
    ctx.fillStyle = faint(colour, 0.7)
    ctx.fillRect(from, bbox.top, least / 2, bbox.height)
  }
  ctx.restore()
}

/** NaN: a cross at the foot. ±Infinity: an arrow at the edge it left by. */
function drawMarks(plot: uPlot, marks: Mark[], dark: boolean): void {
  const { ctx, bbox } = plot
  const r = 4 * (globalThis.devicePixelRatio || 1)
  ctx.save()
  ctx.strokeStyle = dark ? '#ff8b95' : '#b8212f'
  ctx.fillStyle = ctx.strokeStyle
  ctx.lineWidth = r / 2.5
  for (const mark of marks) {
    const x = plot.valToPos(mark.x, 'x', true)
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    const y = mark.what === 'Infinity' ? bbox.top + r : bbox.top + bbox.height - r
    const tip = mark.what === 'Infinity' ? -r : r
    ctx.beginPath()
    if (mark.what === 'NaN') {
      ctx.moveTo(x - r, y - r)
      ctx.lineTo(x + r, y + r)
      ctx.moveTo(x + r, y - r)
      ctx.lineTo(x - r, y + r)
      ctx.stroke()
    } else {
      ctx.moveTo(x - r, y - tip)
      ctx.lineTo(x + r, y - tip)
      ctx.lineTo(x, y + tip)
      ctx.fill()
    }
  }
  ctx.restore()
}
