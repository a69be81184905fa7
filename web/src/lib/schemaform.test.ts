import { expect, test } from 'vitest'
import { belongs, getAt, groupsOf, setAt } from './schemaform'

const schema = {
  required: ['description'],
  properties: {
    description: {},
    recipe: { default: 'pretrain', readOnly: true },
    params: {
      properties: {
        lr: { type: 'number', maximum: 1, default: 3e-4, title: 'Learning rate' },
        schedule: { enum: ['cosine', 'linear'], default: 'cosine' },
        net: { properties: { depth: { type: 'integer' } }, required: ['depth'] },
        compile: { default: false },
        betas: { default: [0.9, 0.99] },
      },
    },
  },
}

test('each property becomes the field that fits it', () => {
  const groups = groupsOf(schema)
  expect(groups.map((group) => group.name)).toEqual(['', 'params'])
  const kinds = Object.fromEntries(groups.flatMap((group) => group.fields).map((one) => [one.name, one.kind]))
  expect(kinds).toEqual({
    project: 'text',
    name: 'text',
    description: 'text',
    tags: 'list',
    recipe: 'text',
    'params.lr': 'number',
    'params.schedule': 'choice',
    'params.net.depth': 'integer',
    'params.compile': 'boolean',
    'params.betas': 'json',
  })
})

test('required, locked, limits and presets reach the field', () => {
  const all = new Map(groupsOf(schema).flatMap((group) => group.fields.map((one) => [one.name, one])))
  expect(all.get('description')?.required).toBe(true)
  expect(all.get('params.net.depth')?.required).toBe(true)
  expect(all.get('recipe')).toMatchObject({ locked: true, preset: 'pretrain' })
  expect(all.get('params.lr')).toMatchObject({ most: 1, preset: 3e-4, title: 'Learning rate' })
})

test('a value goes in and out again, and leaves no empty mapping behind', () => {
  const one = setAt({ name: 'x' }, ['params', 'net', 'depth'], 2)
  expect(one).toEqual({ name: 'x', params: { net: { depth: 2 } } })
  expect(getAt(one, ['params', 'net', 'depth'])).toBe(2)
  expect(setAt(one, ['params', 'net', 'depth'], undefined)).toEqual({ name: 'x' })
})

test('a fault inside a value belongs to its field, one of a longer name does not', () => {
  expect(belongs('params.net', 'params.net.depth')).toBe(true)
  expect(belongs('tags', 'tags[1]')).toBe(true)
  expect(belongs('params.l', 'params.lr')).toBe(false)
})
