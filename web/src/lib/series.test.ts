import { expect, test } from 'vitest'
import { align, extent, marks, positive, section, smooth } from './series'

const range = (n: number) => Array.from({ length: n }, (_, i) => i)

test('a constant stays constant under any smoothing', () => {
  for (const weight of [0.1, 0.6, 0.9, 0.99, 0.999])
    for (const value of smooth(
      range(500),
      range(500).map(() => 3.7),
      weight,
    ))
      expect(value).toBeCloseTo(3.7, 12)
})

test('smoothing starts at the first value and follows the mean', () => {
  const y = range(400).map((i) => (i % 2 ? 1 : 3))
  const out = smooth(range(400), y, 0.97)
  expect(out[0]).toBe(3)
  expect(out.at(-1)).toBeCloseTo(2, 1)
})

test('smoothing does not depend on how long the series is', () => {
  const y = range(1000).map((i) => Math.sin(i / 9))
  const short = smooth(range(300), y.slice(0, 300), 0.9)
  const long = smooth(range(1000), y, 0.9)
  for (const i of [0, 10, 299]) expect(short[i]).toBeCloseTo(long[i]!, 10)
})

test('a metric that is logged rarely is smoothed only as its distances ask', () => {
  const x = range(15).map((i) => i * 100)
  const y = x.map((at) => 5 * Math.exp(-at / 300))
  smooth(x, y, 0.9, 1.4).forEach((value, i) => {
    expect(Math.abs(value! - y[i]!)).toBeLessThan(0.01)
  })
})

test('a gap stays a gap and does not reset the average', () => {
  const out = smooth([0, 1, 2, 3], [1, 1, null, 1], 0.9)
  expect(out[2]).toBeNull()
  expect(out[3]).toBeCloseTo(1, 12)
})

test('values that are not finite become marks', () => {
  expect(marks([1, 2, 3, 4], [0.5, 'NaN', 'Infinity', '-Infinity'])).toEqual([
    { x: 2, what: 'NaN' },
    { x: 3, what: 'Infinity' },
    { x: 4, what: '-Infinity' },
  ])
})

test('curves with different x share one axis and keep every point', () => {
  const { x, ys } = align([
    { x: [0, 2], ys: [[10, 12]] },
    { x: [1, 2], ys: [[21, 22]] },
  ])
  expect(x).toEqual([0, 1, 2])
  expect(ys).toEqual([
    [10, undefined, 12],
    [undefined, 21, 22],
  ])
})

test('a log axis drops what it cannot hold and says how many', () => {
  expect(positive([1, 0, -2, null, 3])).toEqual({ y: [1, null, null, null, 3], dropped: 2 })
})

test('the range is never empty and never NaN', () => {
  expect(extent([[null, undefined]])).toEqual([0, 1])
  const [low, high] = extent([[5, 5]])
  expect(low).toBeLessThan(5)
  expect(high).toBeGreaterThan(5)
  expect(extent([[-1, 10]], true)[0]).toBeGreaterThan(0)
})

test('a section is what stands before the last slash', () => {
  expect(section('train/loss')).toBe('train')
  expect(section('loss')).toBe('')
  expect(section('system/card0/util')).toBe('system/card0')
})
