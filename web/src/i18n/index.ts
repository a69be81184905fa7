/** Languages: the page's own words (typed keys) and the server's sentences by code. Each language is loaded when chosen. */

import i18next from 'i18next'
import { initReactI18next } from 'react-i18next'
import type en from './en.json'

export type Lang = 'en' | 'zh'
export type Key = keyof typeof en

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'web'
    resources: { web: typeof en }
    keySeparator: false
    nsSeparator: false
    interpolationPrefix: '{'
    interpolationSuffix: '}'
  }
}

const STORE = 'trackbed.lang'
const LOADERS = {
  en: () => Promise.all([import('./en.json'), import('./codes.en')]),
  zh: () => Promise.all([import('./zh.json'), import('./codes.zh')]),
}

let codes: Record<string, string> = {}

export function wanted(search = window.location.search): Lang {
  const asked = new URLSearchParams(search).get('lang') ?? localStorage.getItem(STORE) ?? navigator.languages[0] ?? 'en'
  return asked.startsWith('zh') ? 'zh' : 'en'
}

export async function startI18n(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: 'none',
    defaultNS: 'web',
    ns: ['web'],
    resources: {},
    fallbackLng: false,
    keySeparator: false,
    nsSeparator: false,
    interpolation: { prefix: '{', suffix: '}', escapeValue: false },
    returnNull: false,
  })
  await setLang(wanted(), false)
}

export async function setLang(lang: Lang, keep = true): Promise<void> {
  const [words, sentences] = await LOADERS[lang]()
  codes = Object.assign({}, ...Object.values(sentences.default))
  i18next.addResourceBundle(lang, 'web', words.default, true, true)
  document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en'
  if (keep) localStorage.setItem(STORE, lang)
  await i18next.changeLanguage(lang)
}

export function lang(): Lang {
  return i18next.language === 'zh' ? 'zh' : 'en'
}

/** Locale for Intl. */
export function locale(): string {
  return lang() === 'zh' ? 'zh-CN' : 'en-GB'
}

/** The sentence of a code with its values; an unknown code (from a newer server) is shown rather than hidden. */
export function sentence(code: string, params: Record<string, unknown> = {}): string {
  return fill(codes[code] ?? '', params) || unknown(code, params)
}

/** The word of a code without values: states, causes, roles. */
export function word(kind: string, value: string): string {
  return codes[`${kind}.${value}`] ?? value.replaceAll('_', ' ')
}

export function known(code: string): boolean {
  return code in codes
}

export function fill(text: string, params: Record<string, unknown>): string {
  return text
    .replace(/\{([a-z_0-9]+)\}/g, (hole, name: string) => (name in params ? String(params[name]) : hole))
    .replace(/\b(\d+) (\w+)\(s\)/g, (_, count: string, word: string) => `${count} ${word}${count === '1' ? '' : 's'}`)
}

function unknown(code: string, params: Record<string, unknown>): string {
  return Object.keys(params).length ? `${code} ${JSON.stringify(params)}` : code
}
