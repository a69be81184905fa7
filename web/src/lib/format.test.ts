import { expect, test } from 'vitest'
import { ago, cardHours, count, duration, measure, number, size } from './format'

test('a tiny number keeps its size: 1e-10 is never shown as 1e-1', () => {
  expect(number(1e-10)).toBe('1e−10')
  expect(number(1.23456e-7)).toBe('1.2346e−7')
})

test('numbers show five digits that mean something, whole ones in full', () => {
  expect(number(2.2134567)).toBe('2.2135')
  expect(number(0.0003)).toBe('0.0003')
  expect(number(123456)).toBe('123456')
  expect(number(1e308)).toBe('1e308')
  expect(number(100)).toBe('100')
  expect(number(1500.5)).toBe('1500.5')
})

test('what is not finite is said, and minus zero is not zero', () => {
  expect(number('NaN')).toBe('NaN')
  expect(number('Infinity')).toBe('∞')
  expect(number('-Infinity')).toBe('−∞')
  expect(number(-0)).toBe('−0')
  expect(number(undefined)).toBe('–')
})

test('a shown number reads back as the same to five digits', () => {
  for (let i = -300; i <= 300; i += 7)
    for (const mantissa of [1, 1.5, 9.99996, -2.77777]) {
      const value = mantissa * 10 ** i
      const back = Number(number(value).replaceAll('−', '-'))
      expect(Math.abs(back - value)).toBeLessThanOrEqual(Math.abs(value) * 1e-4)
    }
})

test('durations, sizes and card-hours', () => {
  expect(duration(4.25)).toBe('4.3s')
  expect(duration(75.3)).toBe('1m 15s')
  expect(duration(3661)).toBe('1h 01m')
  expect(duration(90_000)).toBe('1d 01h')
  expect(duration(-1)).toBe('0.0s')
  expect(size(1536)).toBe('1.5 KiB')
  expect(size(0)).toBe('0 B')
  expect(cardHours(0)).toBe('0')
  expect(cardHours(10)).toBe('<0.01')
  expect(cardHours(7200)).toBe('2.00')
})

test('a metric is shown in the unit that its name tells', () => {
  expect(measure('system/rss_bytes', 2 * 2 ** 30)).toBe('2 GiB')
  expect(measure('system/cpu_percent', 7.44)).toBe('7.44%')
  expect(measure('loss', 2.5)).toBe('2.5')
  expect(measure('system/rss_bytes', 'NaN')).toBe('NaN')
})

test('counts and ages speak the language', () => {
  expect(count(123456, 'zh-CN')).toBe('12.3万')
  expect(count(1234, 'en-GB')).toBe('1,234')
  expect(ago(0, 180_000, 'en-GB')).toBe('3 min ago')
  expect(ago(0, 180_000, 'zh-CN')).toBe('3分钟前')
})
