import { expect, test } from 'vitest'
import { blocks, safe, spans, target } from './markdown'

const kinds = (text: string) => blocks(text).map((block) => block.kind)

test('the blocks of a README', () => {
  const text =
    '# A *b*\n\nOne\ntwo.\n\n- x\n  - y\n1. z\n\n```sh check\nls <b>\n```\n> q\n\n| a | b |\n|---|---|\n| 1 | `|` |\n\n---\n'
  expect(kinds(text)).toEqual(['heading', 'paragraph', 'list', 'code', 'quote', 'table', 'rule'])
  expect(blocks(text)[3]).toEqual({ kind: 'code', text: 'ls <b>', words: 'sh check' })
  const list = blocks(text)[2]
  expect(list?.kind === 'list' && list.items.map(({ depth, ordered }) => [depth, ordered])).toEqual([
    [0, false],
    [1, false],
    [0, true],
  ])
})

test('HTML is text', () => {
  expect(spans('<img src=x onerror=alert(1)>')).toEqual([{ kind: 'text', text: '<img src=x onerror=alert(1)>' }])
})

test('spans inside each other, and names with underscores as they are', () => {
  expect(spans('**a `b`** snake_case_name')).toEqual([
    {
      kind: 'strong',
      spans: [
        { kind: 'text', text: 'a ' },
        { kind: 'code', text: 'b' },
      ],
    },
    { kind: 'text', text: ' snake_case_name' },
  ])
})

test('only harmless links are links, and pictures are their words', () => {
  expect(spans('[a](javascript:alert)')).toEqual([{ kind: 'text', text: 'a' }])
  expect(spans('![seen](https://e.org/x.png)')).toEqual([{ kind: 'text', text: 'seen' }])
  expect(['//evil.org/x', 'data:text/html,x', 'JAVASCRIPT:x', ''].map(safe)).toEqual([false, false, false, false])
  expect(['docs/a.md', '#part', 'https://e.org', 'mailto:a@b.c'].map(safe)).toEqual([true, true, true, true])
})

test('a link between documents', () => {
  expect(target('docs/a.md', '../README.md#x')).toBe('README.md')
  expect(target('docs/a.md', './b.md')).toBe('docs/b.md')
  expect(target('a.md', '../../etc')).toBe('')
  expect(target('a.md', 'https://e.org')).toBe('')
})

test('what never closes is shown, quickly', () => {
  expect(kinds('```\nx')).toEqual(['code'])
  const began = performance.now()
  blocks(`${'> '.repeat(5000)}x`)
  spans('**a '.repeat(5000))
  spans('[a]('.repeat(5000))
  spans('`a '.repeat(5001))
  expect(performance.now() - began).toBeLessThan(3000)
})
