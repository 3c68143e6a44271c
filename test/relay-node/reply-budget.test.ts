/** The budget of answers to addresses that have not proved themselves. */
import { describe, expect, test } from 'vitest'
import { ReplyBudget } from '../../relay-node/reply-budget.ts'

/** Numbers from 0 to 1 from a seed (the generator of Park and Miller). */
function seeded(seed = 1) {
  let state = seed
  return () => {
    state = (state * 48_271) % 0x7fff_ffff
    return state / 0x7fff_ffff
  }
}

test('a network gets 25 answers a second, and about 16 at once', () => {
  const budget = new ReplyBudget(undefined, seeded())
  const answered = (count: number, now: number) =>
    Array.from({ length: count }, (_, n) => budget.take(`203.0.113.${n % 256}`, now)).filter(Boolean).length
  const atOnce = answered(1_000, 10_000)
  expect(atOnce).toBeGreaterThan(11)
  expect(atOnce).toBeLessThan(31)
  let sum = 0
  for (let now = 10_001; now <= 11_000; now += 1) sum += answered(20, now)
  expect(sum).toBeGreaterThan(20)
  expect(sum).toBeLessThan(30)
  expect(budget.take('203.0.114.1', 11_000)).toBe(true)
})

test('all networks together get 6,000 answers a second, and about 60 at once', () => {
  const budget = new ReplyBudget(undefined, seeded())
  const answered = (count: number, now: number, offset: number) =>
    Array.from({ length: count }, (_, n) => budget.take(`10.${(n + offset) % 256}.${n % 251}.1`, now)).filter(Boolean)
      .length
  expect(answered(200, 10_000, 0)).toBeGreaterThan(50)
  let sum = 0
  for (let now = 10_010; now <= 11_000; now += 10) sum += answered(200, now, now)
  expect(sum).toBeGreaterThan(5_700)
  expect(sum).toBeLessThan(6_300)
})

/** Callers repeat a question every `periodMillis`; returns how many of 100 were answered within `millisMax`. */
function askDuringFlood({ caller, networks, periodMillis, millisMax }: Flood) {
  const perMilli = 20
  const budget = new ReplyBudget(undefined, seeded())
  const startedAt = 10_000
  const starts = Array.from({ length: 100 }, (_, n) => startedAt + 500 + n * 7)
  const answered = new Set<number>()
  let sent = 0
  for (let now = startedAt; now < startedAt + 1_200 + millisMax; now += 1) {
    for (let n = 0; n < perMilli; n += 1) {
      // In the middle of the datagrams of its millisecond.
      if (n === perMilli / 2)
        for (const [index, start] of starts.entries()) {
          const elapsed = now - start
          if (elapsed < 0 || elapsed >= millisMax || elapsed % periodMillis !== 0 || answered.has(index)) continue
          if (budget.take(caller(index), now + n / perMilli)) answered.add(index)
        }
      // Steps of a prime number visit the networks in no simple order.
      const network = (sent * 7_919) % networks
      budget.take(`10.${network % 250}.${Math.floor(network / 250)}.9`, now + n / perMilli)
      sent += 1
    }
  }
  return answered.size
}

interface Flood {
  readonly caller: (index: number) => string
  readonly networks: number
  readonly periodMillis: number
  readonly millisMax: number
}

/** In a network of the flood, in step with its share: the 25th part of a second. */
const insider = (index: number) => `10.${index}.0.200`
const stranger = (index: number) => `192.0.${index}.7`

describe('while 20,000 forged questions arrive each second', () => {
  test.each([
    ['from 200 networks, of 100 SRT callers', { networks: 200, periodMillis: 250, millisMax: 2_000 }],
    ['from 5,000 networks, of 100 SRT callers', { networks: 5_000, periodMillis: 250, millisMax: 2_000 }],
    [
      'from their own and 199 other networks, of 100 SRT callers',
      { networks: 200, periodMillis: 40, millisMax: 2_000, caller: insider },
    ],
    ['from 200 networks, of 100 SRTLA encoders', { networks: 200, periodMillis: 1_000, millisMax: 5_000 }],
  ])('%s at least 90 are answered in time', (_, flood) => {
    expect(askDuringFlood({ caller: stranger, ...flood })).toBeGreaterThanOrEqual(90)
  })
})
