/** Incidents over series of measurements: when they open and end, and what one measurement is made of. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  accountsMin,
  measureParts,
  type RegionFigures,
  type ServiceFigures,
} from '../../../domain/operations/incident-measurements.ts'
import { incidentText } from '../../../domain/operations/incident-texts.ts'
import {
  confirmMillis,
  fineMillis,
  gapMillis,
  type Incident,
  incidentKinds,
  incidentParts,
  nextIncident,
} from '../../../domain/operations/incidents.ts'

interface Step {
  /** Since the measurement before. */
  readonly afterMillis: number
  /** For how long the subject has been bad; null while it is fine. */
  readonly badForMillis: number | null
}

/** What the store has after each measurement of one subject. */
function measure(steps: readonly Step[]) {
  const ended: Incident[] = []
  const history: { now: number; isBad: boolean; open: Incident | undefined }[] = []
  let open: Incident | undefined
  let [now, measuredAt] = [1_000_000_000, null as number | null]
  for (const { afterMillis, badForMillis } of steps) {
    now += afterMillis
    const badSince = badForMillis === null ? null : now - badForMillis
    const next = nextIncident(open, { badSince }, { now, measuredAt, lastEndedAt: ended.at(-1)?.endedAt ?? null })
    if (next && next.endedAt !== null) ended.push(next)
    open = next?.endedAt === null ? next : undefined
    history.push({ now, isBad: badSince !== null, open })
    measuredAt = now
  }
  return { ended, open, history, now }
}

const bad = (afterMillis: number, badForMillis = 0): Step => ({ afterMillis, badForMillis })
const fine = (afterMillis: number): Step => ({ afterMillis, badForMillis: null })
const repeat = (times: number, step: Step): Step[] => Array.from({ length: times }, () => step)
const every = 15_000

const anySteps = fc.array(
  fc.record({
    afterMillis: fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.integer({ min: 1, max: 4 * gapMillis })),
    badForMillis: fc.option(fc.integer({ min: 0, max: 2 * fineMillis })),
  }),
  { maxLength: 80 },
)

describe('an incident', () => {
  test('opens when its subject has been bad for a minute, from the first moment on', () => {
    const short = measure([fine(every), ...repeat(4, bad(every))])
    expect(short.open?.confirmedAt).toBeNull()
    const long = measure([fine(every), ...repeat(5, bad(every))])
    expect(long.open).toEqual({
      beganAt: long.now - confirmMillis,
      confirmedAt: long.now,
      fineSince: null,
      endedAt: null,
    })
  })

  test('opens at once when its subject is known to be bad for longer', () => {
    const { open, now } = measure([fine(every), bad(every, 90_000)])
    expect(open).toMatchObject({ beganAt: now - 90_000, confirmedAt: now })
  })

  test('of a fault of less than a minute leaves nothing', () => {
    expect(measure([fine(every), bad(every), bad(every), fine(every)])).toMatchObject({ ended: [], open: undefined })
  })

  test('goes on over pauses of the fault, and ends with the first fine moment that lasts', () => {
    const pause = repeat(fineMillis / every, fine(every))
    const { ended, open, now } = measure([fine(1), bad(every, 90_000), ...pause, bad(every), ...pause, fine(every)])
    expect(open).toBeUndefined()
    expect(ended).toHaveLength(1)
    expect(ended[0]?.endedAt).toBe(now - fineMillis)
  })

  test('ends only after its subject was seen to be fine for the whole time', () => {
    const { ended, open } = measure([fine(1), bad(every, 90_000), fine(every), fine(fineMillis)])
    expect([ended, open?.fineSince !== null]).toEqual([[], true])
  })

  test('never overlaps another of its subject, is never shorter than nothing, and ends after a fine time only', () => {
    fc.assert(
      fc.property(anySteps, (steps) => {
        const { ended, open, history } = measure(steps)
        const all = open?.confirmedAt ? [...ended, open] : ended
        for (const [index, { beganAt, endedAt, confirmedAt }] of all.entries()) {
          expect(confirmedAt).not.toBeNull()
          expect(endedAt ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(beganAt)
          expect(beganAt).toBeGreaterThanOrEqual(all[index - 1]?.endedAt ?? Number.NEGATIVE_INFINITY)
        }
        for (const { endedAt } of ended) {
          const until = history.filter(({ now }) => now >= (endedAt ?? 0) && now <= (endedAt ?? 0) + fineMillis)
          expect(until.some(({ isBad }) => isBad)).toBe(false)
        }
      }),
    )
  })

  test('is the same when a measurement is repeated at its time', () => {
    fc.assert(
      fc.property(anySteps, fc.nat(), (steps, index) => {
        const position = index % Math.max(1, steps.length)
        const repeated = steps.flatMap((step, at) => (at === position ? [step, { ...step, afterMillis: 0 }] : [step]))
        const [once, twice] = [measure(steps), measure(repeated)]
        expect([twice.ended, twice.open]).toEqual([once.ended, once.open])
      }),
    )
  })
})

const nothing = { failed: 0, tried: 0, since: null }
const quietRegion: RegionFigures = {
  region: 'eu',
  starts: nothing,
  losses: nothing,
  cutSince: null,
  isSilent: false,
  closedSince: null,
}
const now = 10_000_000
const allWell: ServiceFigures = {
  now,
  measuredAt: now - every,
  apiBadSince: null,
  apiSince: 0,
  mails: nothing,
  billingEvents: nothing,
  regions: [quietRegion],
}
const badOf = (figures: Partial<ServiceFigures>) =>
  measureParts({ ...allWell, ...figures }).flatMap(({ region, part, kind, badSince }) =>
    badSince === null ? [] : [[region, part, kind, badSince]],
  )
const badInRegion = (figures: Partial<RegionFigures>, service: Partial<ServiceFigures> = {}) =>
  badOf({ ...service, regions: [{ ...quietRegion, ...figures }] })

describe('a measurement', () => {
  test('of a service whose parts work finds nothing', () => {
    expect(badOf({})).toEqual([])
    expect(badOf({ measuredAt: null })).toEqual([])
  })

  test.each([2, accountsMin])('needs failed starts of three accounts: %i', (failed) => {
    const found = badInRegion({ starts: { failed, tried: failed, since: now - 1 } })
    expect(found).toEqual(failed < accountsMin ? [] : [['eu', 'starts', 'starts_failing', now - 1]])
  })

  test('needs failures of half of the accounts that tried', () => {
    const startsOf = (tried: number) => badInRegion({ starts: { failed: 5, tried, since: 7 } })
    expect([startsOf(10).length, startsOf(11).length]).toEqual([1, 0])
    expect(badOf({ mails: { failed: 5, tried: 10, since: 7 } })).toEqual([[null, 'sign_in', 'part_outage', 7]])
    expect(badOf({ billingEvents: { failed: 3, tried: 0, since: 8 } })).toEqual([[null, 'billing', 'part_outage', 8]])
  })

  test('counts relays that fell silent, were lost, or have no way to the API', () => {
    const relays = (badSince: number) => [['eu', 'relays', 'part_outage', badSince]]
    expect(badInRegion({ isSilent: true })).toEqual(relays(now))
    expect(badInRegion({ losses: { failed: 4, tried: 6, since: 5 } })).toEqual(relays(5))
    expect(badInRegion({ cutSince: 6 })).toEqual(relays(6))
    expect(badInRegion({ closedSince: 4 })).toEqual([['eu', 'starts', 'region_closed', 4]])
  })

  test('blames no region for the API', () => {
    expect(badInRegion({ cutSince: 6 }, { apiBadSince: 6 })).toEqual([[null, 'api', 'part_outage', 6]])
  })

  test('after a pause finds that nothing controlled relays, and that the API was away if it came back in it', () => {
    const measuredAt = now - gapMillis - 1
    const control = [null, 'control', 'part_outage', measuredAt]
    expect(badOf({ measuredAt })).toEqual([control])
    expect(badOf({ measuredAt, apiSince: now })).toEqual([[null, 'api', 'part_outage', measuredAt], control])
    expect(badOf({ measuredAt: now - gapMillis, apiSince: now })).toEqual([])
  })
})

test('each kind of incident of each part has a title', () => {
  for (const part of incidentParts)
    for (const kind of incidentKinds) expect(incidentText({ part, kind }).title).not.toBe('')
})
