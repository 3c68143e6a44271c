/** When the number of links of a stream counts as changed. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { judgeLinks, type LinksChange, linksSettledMillis, unjudgedLinks } from '../../../domain/relay/path-events.ts'
import { propertyRuns } from '../../support/property-runs.ts'

const stepMillis = 250

/** The changes of a stream that has each number of links for a time, counted every 250 ms. */
function judge(...pieces: readonly { readonly links: number; readonly millis: number }[]): LinksChange[] {
  const changes: LinksChange[] = []
  let [judged, at] = [unjudgedLinks, 0]
  for (const { links, millis } of pieces)
    for (const until = at + millis; at < until; at += stepMillis) {
      const next = judgeLinks(judged, links, at)
      judged = next.judged
      if (next.change) changes.push(next.change)
    }
  return changes
}

describe('the number of links', () => {
  test('has changed when it stayed another one for two seconds, from the time when it became it', () => {
    expect(judge({ links: 3, millis: 10_000 }, { links: 2, millis: 2_000 })).toEqual([])
    expect(judge({ links: 3, millis: 10_000 }, { links: 2, millis: 2_250 })).toEqual([{ from: 3, to: 2, at: 10_000 }])
  })

  test('has not changed with the links that a stream begins with', () => {
    expect(judge({ links: 1, millis: 1_000 }, { links: 3, millis: 60_000 })).toEqual([])
  })

  test('has not changed when a link flaps, and has when it stays away after that', () => {
    const flaps = Array.from({ length: 60 }, (_, index) => ({ links: 2 + (index % 2), millis: 1_000 }))
    expect(judge({ links: 3, millis: 5_000 }, ...flaps)).toEqual([])
    expect(judge({ links: 3, millis: 5_000 }, ...flaps, { links: 2, millis: 5_000 })).toEqual([
      { from: 3, to: 2, at: 65_000 },
    ])
  })

  test('has changed when the publisher returns with another one, and not while it is away', () => {
    const before = [
      { links: 3, millis: 5_000 },
      { links: 0, millis: 60_000 },
    ]
    expect(judge(...before, { links: 3, millis: 5_000 })).toEqual([])
    expect(judge(...before, { links: 1, millis: 5_000 })).toEqual([{ from: 3, to: 1, at: 65_000 }])
  })

  test('of any stream changes at most every two seconds, from one stated number to the next', () => {
    const piece = fc.record({ links: fc.nat(4), millis: fc.nat(20).map((steps) => steps * stepMillis) })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const changes = judge(...pieces)
        for (const [index, { from, to, at }] of changes.entries()) {
          const next = changes[index + 1]
          expect(from).not.toBe(to)
          if (next === undefined) continue
          expect(next.from).toBe(to)
          expect(next.at - at).toBeGreaterThanOrEqual(linksSettledMillis)
        }
      }),
      { numRuns: propertyRuns(200, 5_000) },
    )
  })
})
