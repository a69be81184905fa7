import { expect, test } from 'vitest'
import { contrast, pen } from './palette'

test('every curve colour stands out from its background', () => {
  for (let i = 0; i < 8; i += 1) {
    expect(contrast(pen(i, false).colour, '#ffffff')).toBeGreaterThanOrEqual(4.5)
    expect(contrast(pen(i, true).colour, '#171b22')).toBeGreaterThanOrEqual(4.5)
  }
})

test('from the ninth curve on dashes tell them apart', () => {
  const seen = new Set(Array.from({ length: 32 }, (_, i) => `${pen(i, false).colour}${pen(i, false).dash}`))
  expect(seen.size).toBe(32)
})
