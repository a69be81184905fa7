import { expect, test } from 'vitest'
import { flat, matrix, spread } from './matrix'

test('rows that differ are told from those that agree, absent ones included', () => {
  const rows = matrix([
    { lr: 1, seed: 0, a: { b: [1] } },
    { lr: 2, seed: 0, a: { b: [1] } },
    { lr: 1, a: { b: [1] } },
  ])
  expect(rows.map((row) => [row.name, row.differs])).toEqual([
    ['a', false],
    ['lr', true],
    ['seed', true],
  ])
})

test('nested values become rows; lists and empty ones stay whole', () => {
  expect(flat({ a: { b: { c: 1 }, d: [1, { e: 2 }] }, f: {} })).toEqual({ 'a.b.c': 1, 'a.d': [1, { e: 2 }], f: {} })
})

test('the spread is that of a sample, over the numbers alone', () => {
  expect(spread([1, 'NaN', 3, undefined])).toEqual({ mean: 2, std: Math.SQRT2, count: 2 })
  expect(spread(['x'])).toBeNull()
})
