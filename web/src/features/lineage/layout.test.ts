import { expect, test } from 'vitest'
import { layout } from './layout'

test('what a run used stands before it, what it made behind it', () => {
  const { boxes, columns } = layout({
    root: 'run:a',
    nodes: {},
    edges: [
      { source: 'run:a', target: 'data:d@1', kind: 'used' },
      { source: 'run:a', target: 'model:m@1', kind: 'registered' },
      { source: 'run:b', target: 'model:m@1', kind: 'used' },
    ],
  })
  const column = Object.fromEntries(boxes.map((box) => [box.id, box.column]))
  expect(column['data:d@1']).toBeLessThan(column['run:a']!)
  expect(column['run:a']).toBeLessThan(column['model:m@1']!)
  expect(column['model:m@1']).toBeLessThan(column['run:b']!)
  expect(columns).toBe(4)
})
