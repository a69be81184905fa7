import { expect, test } from 'vitest'
import codesEn from './codes.en'
import codesZh from './codes.zh'
import en from './en.json'
import zh from './zh.json'

const base = (key: string) => key.replace(/_(one|other)$/, '')
const holes = (text: string) => [...text.matchAll(/\{([a-z_0-9]+)\}/g)].map((found) => found[1]).sort()
const flat = (files: Record<string, Record<string, string>>) => Object.assign({}, ...Object.values(files))

test('both languages have the same words', () => {
  expect(new Set(Object.keys(zh).map(base))).toEqual(new Set(Object.keys(en).map(base)))
})

test('both languages fill the same values', () => {
  const chinese: Record<string, string> = zh
  for (const [key, text] of Object.entries(en))
    expect([key, holes(chinese[key] ?? chinese[`${base(key)}_other`]!)]).toEqual([key, holes(text)])
})

test('the sentences of the server are there in both languages', () => {
  expect(Object.keys(flat(codesZh)).sort()).toEqual(Object.keys(flat(codesEn)).sort())
})
