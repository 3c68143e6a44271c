/** The verdicts about the links of an encoder. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { judgeLinks, type LinkFacts, linkVerdicts } from '../../../domain/relay/links.ts'

const latencyMillis = 1_200
const good: LinkFacts = {
  uptimeMillis: 60_000,
  silentMillis: 10,
  gapMillisMax: 100,
  lateMillis: 30,
  lost: 0.01,
  packets: 1_000,
}

test.each([
  ['slow', { lateMillis: 250 }, 'weak'],
  ['slow', { lateMillis: 700 }, 'useless'],
  ['lossy', { lost: 0.06 }, 'weak'],
  ['lossy', { lost: 0.3 }, 'useless'],
  ['silent', { gapMillisMax: 2_000 }, 'weak'],
  ['silent', { silentMillis: 3_500, gapMillisMax: 3_500 }, 'useless'],
  ['narrow', { packets: 100 }, 'weak'],
  ['narrow', { packets: 10 }, 'useless'],
] as const)('a link is %s with %j, which makes it %s', (reason, facts, verdict) => {
  expect(judgeLinks([good, { ...good, ...facts }, good], latencyMillis)).toEqual([
    { verdict: 'good' },
    { verdict, reason },
    { verdict: 'good' },
  ])
})

test('the only link is neither slow nor narrow, since there is no other', () => {
  expect(judgeLinks([{ ...good, lateMillis: 5_000 }], latencyMillis)).toEqual([{ verdict: 'good' }])
})

test('a new link is not called narrow, since encoders try it carefully', () => {
  expect(judgeLinks([good, { ...good, uptimeMillis: 5_000, packets: 1 }], latencyMillis)[1]).toEqual({
    verdict: 'good',
  })
})

test('what is lost over a silent link is not blamed on the others', () => {
  const silent = { ...good, silentMillis: 2_000, gapMillisMax: 2_000 }
  expect(judgeLinks([{ ...good, lost: 0.5 }, silent], latencyMillis)[0]).toEqual({ verdict: 'good' })
})

const facts: fc.Arbitrary<LinkFacts> = fc.record({
  uptimeMillis: fc.nat(100_000),
  silentMillis: fc.nat(10_000),
  gapMillisMax: fc.nat(10_000),
  lateMillis: fc.nat(3_000),
  lost: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
  packets: fc.nat(5_000),
})

test('each link has a verdict of its own, whatever the order, and a reason where it is not good', () => {
  fc.assert(
    fc.property(fc.array(facts, { minLength: 1, maxLength: 8 }), (links) => {
      const judged = judgeLinks(links, latencyMillis)
      expect(judgeLinks(links.toReversed(), latencyMillis)).toEqual(judged.toReversed())
      for (const { verdict, reason } of judged) expect(reason === undefined).toBe(verdict === 'good')
    }),
  )
})

test('a link that gets later or loses more has no better verdict', () => {
  fc.assert(
    fc.property(facts, facts, fc.nat(2_000), fc.double({ min: 0, max: 1, noNaN: true }), (link, other, later, more) => {
      const worse = { ...link, lateMillis: link.lateMillis + later, lost: Math.min((link.lost ?? 0) + more, 1) }
      const badnessOf = (each: LinkFacts) =>
        linkVerdicts.indexOf(judgeLinks([each, other], latencyMillis)[0]?.verdict ?? 'good')
      expect(badnessOf(worse)).toBeGreaterThanOrEqual(badnessOf(link))
    }),
  )
})
