import { expect, test } from 'vitest'
import { layout } from './layout'

test('what a run used stands before it, what it made behind it', () => {
  const { boxes, columns } = layout({
    root: 'run:a',
    nodes: {},
    edges: [
      { source: 'data:d@1', target: 'run:a', kind: 'used' },
      { source: 'run:a', target: 'model:m@1', kind: 'registered' },
      { source: 'model:m@1', target: 'run:b', kind: 'from' },
    ],
  })
  const column = Object.fromEntries(boxes.map((box) => [box.id, box.column]))
  expect(column['data:d@1']).toBeLessThan(column['run:a']!)
  expect(column['run:a']).toBeLessThan(column['model:m@1']!)
  expect(column['model:m@1']).toBeLessThan(column['run:b']!)
  expect(columns).toBe(4)
})
