import { expect, test } from 'vitest'

/** One-way folders: app > pages > features > ui > api > i18n > lib. Features do not import each other. */
const FLOORS = ['lib', 'i18n', 'api', 'ui', 'features', 'pages', 'app']
const files = import.meta.glob<string>('./**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true })

test('imports only go down', () => {
  const wrong: string[] = []
  for (const [path, text] of Object.entries(files)) {
    const [, floor = '', room = ''] = path.split('/')
    for (const [, to = '', inner = ''] of text.matchAll(/from '@\/(\w+)(?:\/(\w+))?/g)) {
      const up = FLOORS.indexOf(to) > FLOORS.indexOf(floor)
      const across = floor === 'features' && to === 'features' && inner !== room
      if (FLOORS.includes(floor) && (up || across)) wrong.push(`${path} imports ${to}/${inner}`)
    }
  }
  expect(wrong).toEqual([])
})

test('a component stays small enough to read', () => {
  const long = Object.entries(files).filter(([path, text]) => path.endsWith('.tsx') && text.split('\n').length > 250)
  expect(long.map(([path]) => path)).toEqual([])
})
