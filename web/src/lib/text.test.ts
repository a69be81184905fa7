import { expect, test } from 'vitest'
import { command, shellQuote } from './command'
import { clean, coloured, highlight, joined, paint, putInFront } from './logs'
import { patchCounts, patchLines } from './patch'
import { readRun, readRuns } from './search'
import { verbs } from './states'
import { told } from './told'

test('a command is safe to paste whatever the name holds', () => {
  expect(command('stop', 'demo#17')).toBe("trackbed stop 'demo#17'")
  expect(shellQuote("it's; rm -rf /")).toBe("'it'\\''s; rm -rf /'")
  expect(shellQuote('stdlib@3')).toBe('stdlib@3')
})

test('a match is found in any case and the text stays whole', () => {
  const parts = highlight('Loss loss LOSS', 'loss')
  expect(parts.map((part) => part.text).join('')).toBe('Loss loss LOSS')
  expect(parts.filter((part) => part.hit)).toHaveLength(3)
  expect(highlight('', 'x')).toEqual([{ text: '', hit: false }])
})

test('colours of terminals are left out of log lines', () => {
  expect(clean('\u001b[31mred\u001b[0m')).toBe('red')
})

test('colours of terminals are kept apart from the text, whatever their form', () => {
  const text = 'a\u001b[1;31mred\u001b[0m \u001b[38;5;2mgreen\u001b[39m \u001b[38;2;20;40;250mblue\u001b[m\u001b[2K!'
  const parts = paint(text)
  expect(parts.map((part) => part.text).join('')).toBe(clean(text))
  expect(parts.map((part) => [part.text, part.colour, part.bold])).toEqual([
    ['a', null, false],
    ['red', 1, true],
    [' ', null, false],
    ['green', 2, false],
    [' ', null, false],
    ['blue', 4, false],
    ['!', null, false],
  ])
})

test('the bytes of a line give its colours back, and are not taken where they say something else', () => {
  const raw = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))
  expect(coloured({ text: '损失', raw: raw('\u001b[31m损失\u001b[0m') })).toBe('\u001b[31m损失\u001b[0m')
  expect(coloured({ text: '50%', raw: raw('10%\r50%') })).toBe('50%')
  expect(coloured({ text: 'plain' })).toBe('plain')
})

test('a search may be a pattern, and what is none is looked for as it stands', () => {
  const hits = (text: string, needle: string) =>
    highlight(text, needle).flatMap((part) => (part.hit ? [part.text] : []))
  expect(hits('step 10 loss 2.5', '\\d+\\.?\\d*')).toEqual(['10', '2.5'])
  expect(hits('f(x) and F(X)', 'f(')).toEqual(['f(', 'F('])
  expect(hits('abc', 'x*')).toEqual([])
})

test('a patch knows its additions from its file names', () => {
  const lines = patchLines('diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n c\n')
  expect(lines.map((line) => line.kind)).toEqual(['file', 'note', 'note', 'hunk', 'remove', 'add', 'same'])
  expect(patchCounts(lines)).toEqual({ added: 1, removed: 1 })
})

test('an old link opens although it holds words that are gone', () => {
  expect(readRuns({ q: 'state = 1', sort: 'name', gone: 'x' })).toEqual({ q: 'state = 1', sort: 'name' })
  expect(readRun({ x: 'moon', log: '1' })).toEqual({ log: '1' })
})

test('a finished run offers nothing, an outside run is not ours to stop', () => {
  expect(verbs('finished', false)).toEqual([])
  expect(verbs('running', true)).toEqual([])
  expect(verbs('running', false)).toContain('pause')
})

test('pages of a log are joined without a line twice, and what was on top is found again', () => {
  const lines = (...ids: string[]) => ids.map((id) => ({ id }))
  expect(joined(lines('a', 'b'), lines('b', 'c')).map((line) => line.id)).toEqual(['a', 'b', 'c'])
  expect(putInFront(lines('c', 'd'), lines('a', 'b', 'c', 'd'))).toBe(2)
  expect(putInFront(lines('c', 'd'), lines('c', 'd', 'e'))).toBe(0)
  expect(putInFront(lines('c', 'e'), lines('a', 'c', 'd', 'e'))).toBe(0)
  expect(putInFront([], lines('a'))).toBe(0)
})

test('what is empty at any depth is not told', () => {
  const record = {
    params: {},
    data: { a: { ref: '' } },
    list: [{}, ''],
    seed: 0,
    ok: false,
    metrics: { 'system/cpu': 1, loss: 2 },
  }
  expect(told(record).map(([name]) => name)).toEqual(['seed', 'ok', 'metrics'])
  expect(told(record.metrics)).toEqual([['loss', 2]])
})
