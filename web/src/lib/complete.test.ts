import { expect, test } from 'vitest'
import { complete, fieldOf } from './complete'

const names = {
  metrics: ['loss', 'eval/loss', 'a b'],
  params: ['lr'],
  tags: ['baseline', "o'neil"],
  values: { owner: ['ada', 'bo'] },
}
const at = (text: string) => complete(text, text.length, names)?.options ?? []

test('a field comes first, and after and, or, not and a bracket', () => {
  expect(at('metrics.l')).toEqual(['metrics.loss', 'metrics.eval/loss'])
  expect(at("state = 'failed' and met")[0]).toBe('metrics.')
  expect(at('not (own')).toEqual(['owner'])
  expect(at('')).toContain('state')
})

test('a name with spaces is offered in quotes', () => {
  expect(at('a b')).toEqual([])
  expect(complete('metrics.a', 9, names)?.options).toContain("metrics.'a b'")
  expect(fieldOf('params', "it's")).toBe("params.'it''s'")
})

test('after a field come operators, after a value and or or', () => {
  expect(at('state ')).toContain('= ')
  expect(at("state = 'failed' ")).toEqual(['and ', 'or '])
  expect(at('metrics.loss < 2 ')).toEqual(['and ', 'or '])
  expect(at('metrics.loss < ')).toEqual([])
})

test('values that are known are offered and quoted', () => {
  expect(at('state = fai')).toEqual(["'failed'"])
  expect(at("state in ('failed', 'sto")).toEqual(["'stopped'", "'stopping'"])
  expect(at('tags has ')).toEqual(["'baseline'", "'o''neil'"])
  expect(at("owner = 'b")).toEqual(["'bo'"])
})

test('an option replaces the part that was typed', () => {
  const found = complete("state = 'fa", 11, names)!
  expect("state = 'fa".slice(0, found.from) + found.options[0]).toBe("state = 'failed'")
})
