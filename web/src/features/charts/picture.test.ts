import { expect, test } from 'vitest'
import type { Series } from '@/api/types'
import { picture, spoken } from './picture'

const raw: Series = { run: 'r', key: 'loss', x: [0, 1, 2], last: [3, 'NaN', 1], mean: [3, 'NaN', 1], points: 3 }
const buckets: Series = {
  run: 'r', key: 'loss', x: [9, 19], last: [1, 2], mean: [1, 2], min: [0, 1], max: ['Infinity', 3], points: 2000, bucketed: true, non_finite: [4],
} // biome-ignore format: one series

test('raw points draw one line with a gap and a mark where it was not finite', () => {
  const drawn = picture([raw], { smoothing: 0, log: false })
  expect(drawn.columns).toEqual([[3, null, 1]])
  expect(drawn.marks).toEqual([{ x: 1, what: 'NaN' }])
})

test('buckets draw their range as a band behind the mean', () => {
  const drawn = picture([buckets], { smoothing: 0, log: false })
  expect(drawn.lines.map((line) => line.role)).toEqual(['low', 'high', 'line'])
  expect(drawn.columns[1]).toEqual([null, 3])
  expect(drawn.marks).toEqual([{ x: 9, what: 'Infinity' }])
  expect(drawn.points).toBe(2000)
})

test('smoothing keeps the raw line behind the smoothed one', () => {
  const drawn = picture([raw], { smoothing: 0.6, log: false })
  expect(drawn.lines.map((line) => line.role)).toEqual(['raw', 'line'])
})

test('a log axis counts what it leaves out', () => {
  expect(picture([{ ...raw, mean: [1, 0, -1] }], { smoothing: 0, log: true }).dropped).toBe(2)
})

test('a chart can be heard', () => {
  expect(spoken('loss', picture([raw], { smoothing: 0, log: false }), String)).toBe('loss, loss: 1')
})
