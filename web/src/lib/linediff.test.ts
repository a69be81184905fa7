import { expect, test } from 'vitest'
import { linePatch } from './linediff'

test('equal texts have no patch', () => {
  expect(linePatch('a\nb\n', 'a\nb\n', 'x')).toBe('')
})

test('a changed line stands between its neighbours', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i}`).join('\n')
  const patch = linePatch(before, before.replace('line 10', 'LINE 10'), 'a.py')
  expect(patch.split('\n')).toEqual([
    'diff --git a/a.py b/a.py',
    '@@ -8,7 +8,7 @@',
    ' line 7',
    ' line 8',
    ' line 9',
    '-line 10',
    '+LINE 10',
    ' line 11',
    ' line 12',
    ' line 13',
  ])
})

test('applying a patch to the first text gives the second', () => {
  let seed = 7
  const random = (n: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed % n
  }
  for (let round = 0; round < 60; round += 1) {
    const a = Array.from({ length: random(30) }, () => String(random(6)))
    const b = Array.from({ length: random(30) }, () => String(random(6)))
    const patch = linePatch(a.join('\n'), b.join('\n'), 'x').split('\n').slice(1)
    const out: string[] = []
    let at = 0
    for (const line of patch) {
      const hunk = line.match(/^@@ -(\d+)/)
      if (hunk) while (at < Number(hunk[1]) - 1) out.push(a[at++]!)
      else if (line[0] === '+') out.push(line.slice(1))
      else {
        expect(a[at]).toBe(line.slice(1))
        if (line[0] === ' ') out.push(a[at]!)
        at += 1
      }
    }
    out.push(...a.slice(at))
    expect(out).toEqual(b)
  }
})
