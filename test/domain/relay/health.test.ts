/** The rules of health: silence, outages of our own, deadlines. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type ActiveObservation,
  absenceSeconds,
  countQuiet,
  findObjection,
  heldReportSecondsMax,
  isCheckedForObjections,
  isLate,
  isOverdue,
  isRegionalOutage,
  isUnheard,
  lateReportSeconds,
  type ObservedSession,
  type Presence,
  type Reception,
  type ReportObservation,
  silenceByRegion,
  unboundSilentSeconds,
  usageEndedSecondsAgo,
} from '../../../domain/relay/health.ts'
import type { RelaySessionEvent } from '../../../domain/relay/session.ts'

const settings = {
  provisionTimeoutSeconds: 300,
  healthTimeoutSeconds: 45,
  graceSeconds: 120,
  maxSessionSeconds: 57_600,
}
const { healthTimeoutSeconds } = settings

/** Confirmed without interruption for two hours. */
const present: Presence = { forSeconds: 7200, lastSeenSeconds: 0 }
const presentFor = (forSeconds: number): Presence => ({ forSeconds, lastSeenSeconds: 0 })
const lastSeen = (lastSeenSeconds: number): Presence => ({ forSeconds: 7200, lastSeenSeconds })

const anySeconds = fc.integer({ min: 0, max: 1000 })
const anyPresence: fc.Arbitrary<Presence> = fc
  .record({ forSeconds: anySeconds, lastSeenSeconds: fc.integer({ min: 0, max: 60 }) })
  // The last confirmation belongs to the present run.
  .map(({ forSeconds, lastSeenSeconds }) => ({ forSeconds: forSeconds + lastSeenSeconds, lastSeenSeconds }))
const anyPath = fc.option(anyPresence)
const anyReport = fc.option(anySeconds)

describe('a role', () => {
  test.each([
    ['api', 45, 10],
    ['api', 30, 10],
    ['api', 3, 1],
    ['worker', 300, 15],
    ['worker', 45, 15],
    ['worker', 20, 20 / 3],
  ] as const)('%s with a limit of %d s counts as absent %d s after its last confirmation', (role, limit, seconds) => {
    expect(absenceSeconds(role, limit)).toBe(seconds)
  })
})

const active: ActiveObservation = {
  region: 'eu',
  lastReportSeconds: 1,
  activeSeconds: 3600,
  activeInRegion: 1,
  api: present,
  path: present,
}

describe('an active session', () => {
  const silenceOf = (observation: Partial<ActiveObservation>) => {
    const [silence] = silenceByRegion([{ ...active, ...observation }], healthTimeoutSeconds)
    return { isQuiet: silence?.quiet === 1, isSilent: silence?.silent.length === 1 }
  }

  test.each<[string, 'reporting' | 'quiet' | 'silent', Partial<ActiveObservation>]>([
    ['reported half the timeout ago', 'reporting', { lastReportSeconds: 22.5 }],
    ['reported more than half the timeout ago', 'quiet', { lastReportSeconds: 22.6 }],
    ['reported the whole timeout ago', 'quiet', { lastReportSeconds: 45 }],
    ['reported more than the timeout ago', 'silent', { lastReportSeconds: 45.1 }],
    ['never reported since it became active', 'silent', { lastReportSeconds: null, activeSeconds: 45.1 }],
    ['became active recently and never reported', 'reporting', { lastReportSeconds: null, activeSeconds: 22 }],
    ['became active recently, after its last report', 'quiet', { lastReportSeconds: 100, activeSeconds: 30 }],
    ['reported to an API that returned recently', 'reporting', { lastReportSeconds: 100, api: presentFor(20) }],
    ['did not report to an API that has returned', 'silent', { lastReportSeconds: 100, api: presentFor(45.1) }],
    ['has an API that was just seen', 'silent', { lastReportSeconds: 100, api: lastSeen(10) }],
    ['has an API that is absent', 'reporting', { lastReportSeconds: 100, api: lastSeen(10.1) }],
    ['has a path that no worker has looked at', 'silent', { lastReportSeconds: 100, path: null }],
    ['has a path that was just seen open', 'silent', { lastReportSeconds: 100, path: lastSeen(10) }],
    ['has a path that is cut', 'reporting', { lastReportSeconds: 100, path: lastSeen(10.1) }],
    ['reported over a path that was opened recently', 'reporting', { lastReportSeconds: 100, path: presentFor(20) }],
    ['did not report over a path that is open again', 'silent', { lastReportSeconds: 100, path: presentFor(45.1) }],
  ])('that %s counts as %s', (_, expected, observation) => {
    expect(silenceOf(observation)).toEqual({ isQuiet: expected !== 'reporting', isSilent: expected === 'silent' })
  })

  const anyActive = fc.record({
    region: fc.constantFrom('eu', 'us'),
    lastReportSeconds: anyReport,
    activeSeconds: anySeconds,
    activeInRegion: fc.constant(10),
    api: anyPresence,
    path: anyPath,
  })

  test('is silent only if a report could have been received for the whole timeout', () => {
    fc.assert(
      fc.property(anyActive, (observation) => {
        fc.pre(silenceOf(observation).isSilent)
        expect(observation.lastReportSeconds ?? Infinity).toBeGreaterThan(healthTimeoutSeconds)
        expect(observation.activeSeconds).toBeGreaterThan(healthTimeoutSeconds)
        expect(observation.api.forSeconds).toBeGreaterThan(healthTimeoutSeconds)
        expect(observation.api.lastSeenSeconds).toBeLessThanOrEqual(absenceSeconds('api', healthTimeoutSeconds))
        expect(observation.path?.forSeconds ?? Infinity).toBeGreaterThan(healthTimeoutSeconds)
        expect(observation.path?.lastSeenSeconds ?? 0).toBeLessThanOrEqual(absenceSeconds('api', healthTimeoutSeconds))
      }),
    )
  })

  test('stays silent until it reports, while the API is present and its path open', () => {
    fc.assert(
      fc.property(anyActive, anySeconds, (observation, seconds) => {
        fc.pre(silenceOf(observation).isSilent)
        const later = {
          ...observation,
          lastReportSeconds: observation.lastReportSeconds === null ? null : observation.lastReportSeconds + seconds,
          activeSeconds: observation.activeSeconds + seconds,
          api: presentFor(observation.api.forSeconds + seconds),
          path: observation.path && presentFor(observation.path.forSeconds + seconds),
        }
        expect(silenceOf(later).isSilent).toBe(true)
      }),
    )
  })

  test('is counted in its own region only, and silent sessions are quiet as well', () => {
    fc.assert(
      fc.property(fc.array(anyActive, { maxLength: 20 }), (sessions) => {
        const silences = silenceByRegion(sessions, healthTimeoutSeconds)
        expect(silences.map(({ region }) => region).toSorted()).toEqual(
          [...new Set(sessions.map(({ region }) => region))].toSorted(),
        )
        for (const { region, active: activeInRegion, quiet, silent, unheard } of silences) {
          const inRegion = sessions.filter((session) => session.region === region)
          expect(activeInRegion).toBe(10)
          expect(quiet).toBe(inRegion.filter((session) => silenceOf(session).isQuiet).length)
          expect(silent).toEqual(inRegion.filter((session) => silenceOf(session).isSilent))
          expect(quiet).toBeGreaterThanOrEqual(silent.length)
          expect(unheard).toEqual(inRegion.filter((session) => silenceOf({ ...session, path: null }).isSilent))
          expect(unheard).toEqual(expect.arrayContaining([...silent]))
        }
      }),
    )
  })

  test('is quiet by the same rule when Postgres has counted those without a report for half the timeout', () => {
    fc.assert(
      fc.property(fc.array(anyActive, { minLength: 1, maxLength: 20 }), anyPresence, (observations, api) => {
        const sessions = observations.map((session) => ({ ...session, region: 'eu', api, path: null }))
        const quiet = sessions.filter(
          ({ lastReportSeconds, activeSeconds }) =>
            Math.min(lastReportSeconds ?? Number.POSITIVE_INFINITY, activeSeconds) > healthTimeoutSeconds / 2,
        ).length
        const [silence] = silenceByRegion(sessions, healthTimeoutSeconds)
        expect(countQuiet({ quiet, api }, healthTimeoutSeconds)).toBe(silence?.quiet)
      }),
    )
  })
})

describe('a regional outage', () => {
  test.each([
    { active: 0, quiet: 0, isOutage: false },
    { active: 4, quiet: 4, isOutage: false },
    { active: 5, quiet: 2, isOutage: false },
    { active: 5, quiet: 3, isOutage: true },
    { active: 6, quiet: 3, isOutage: false },
    { active: 6, quiet: 4, isOutage: true },
    { active: 1000, quiet: 500, isOutage: false },
    { active: 1000, quiet: 501, isOutage: true },
  ])('with $quiet of $active relays quiet: $isOutage', ({ isOutage, ...counts }) => {
    expect(isRegionalOutage(counts)).toBe(isOutage)
  })
})

describe('an instance that has not reported', () => {
  const unreported = { lastReportSeconds: null, boundSeconds: 100, api: present, path: present }

  test.each<[string, boolean, Partial<ReportObservation & { boundSeconds: number }>]>([
    ['was bound longer ago than the timeout', true, { boundSeconds: 45.1 }],
    ['was bound the whole timeout ago', false, { boundSeconds: 45 }],
    ['has reported after all', false, { lastReportSeconds: 100 }],
    ['waited for an API that returned recently', false, { api: presentFor(45) }],
    ['did not report to an API that has returned', true, { api: presentFor(45.1) }],
    ['has an API that is absent', false, { api: lastSeen(10.1) }],
    ['has a path that no worker has looked at', true, { path: null }],
    ['has a path that is cut', false, { path: lastSeen(10.1) }],
    ['waited for a path that was opened recently', false, { path: presentFor(45) }],
    ['did not report over a path that is open again', true, { path: presentFor(45.1) }],
  ])('and %s is overdue: %s', (_, expected, observation) => {
    expect(isOverdue({ ...unreported, ...observation }, healthTimeoutSeconds)).toBe(expected)
  })

  test('is a reason to ask its provider also while its path is cut, and not while the API is absent', () => {
    expect(isUnheard({ ...unreported, path: lastSeen(60) }, healthTimeoutSeconds)).toBe(true)
    expect(isUnheard({ ...unreported, api: lastSeen(60) }, healthTimeoutSeconds)).toBe(false)
  })
})

describe('an instance without a session', () => {
  test.each<[string, number, Partial<Reception>]>([
    ['whose reports can be received', 100, {}],
    ['whose path no worker has looked at', 100, { path: null }],
    ['whose API is absent', 0, { api: lastSeen(10.1) }],
    ['whose path is cut', 0, { path: lastSeen(10.1) }],
    ['whose API has returned', 20, { api: presentFor(20) }],
    ['whose path is open again', 20, { path: presentFor(20) }],
  ])('%s has been silent for %d of 100 s', (_, seconds, reception) => {
    expect(unboundSilentSeconds(100, { api: present, path: present, ...reception }, healthTimeoutSeconds)).toBe(seconds)
  })
})

describe('the usage of a stopped session', () => {
  const limits = { healthTimeoutSeconds, healthIntervalSeconds: 15 }
  const reported = (lastReportSeconds: number | null, api = present, path = present) => ({
    lastReportSeconds,
    api,
    path,
  })

  test.each<[string, number, ReportObservation]>([
    ['never reported', 0, reported(null)],
    ['reported within the timeout', 0, reported(45)],
    ['died', 185, reported(200)],
    ['could not report because no API runs', 0, reported(200, lastSeen(10.1))],
    ['could not report until recently', 0, reported(200, presentFor(45))],
    ['did not report to an API that has returned', 85, reported(200, presentFor(100))],
    ['could not report because its path is cut', 0, reported(200, present, lastSeen(10.1))],
    ['did not report over a path that is open again', 85, reported(200, present, presentFor(100))],
  ])('that %s ended %d s ago', (_, secondsAgo, observation) => {
    expect(usageEndedSecondsAgo(observation, limits)).toBe(secondsAgo)
  })

  test('ends one report interval after the last report when that is longer than ten seconds', () => {
    expect(usageEndedSecondsAgo(reported(200), { healthTimeoutSeconds: 150, healthIntervalSeconds: 120 })).toBe(80)
  })

  test('ends with the session when that was less than ten seconds after the last report', () => {
    expect(usageEndedSecondsAgo(reported(9), { healthTimeoutSeconds: 3, healthIntervalSeconds: 1 })).toBe(0)
  })

  test('never ends in the future or before the last report', () => {
    const anyLimits = fc.record({
      healthTimeoutSeconds: fc.integer({ min: 1, max: 300 }),
      healthIntervalSeconds: fc.integer({ min: 1, max: 120 }),
    })
    fc.assert(
      fc.property(
        fc.record({ lastReportSeconds: anyReport, api: anyPresence, path: anyPath }),
        anyLimits,
        (observation, some) => {
          const secondsAgo = usageEndedSecondsAgo(observation, some)
          expect(secondsAgo).toBeGreaterThanOrEqual(0)
          expect(secondsAgo).toBeLessThanOrEqual(observation.lastReportSeconds ?? 0)
          expect(secondsAgo).toBeLessThanOrEqual(observation.api.forSeconds)
          expect(secondsAgo).toBeLessThanOrEqual(observation.path?.forSeconds ?? Infinity)
        },
      ),
    )
  })
})

const inProvisioning: ObservedSession = {
  state: 'provisioning',
  reason: 'start_requested',
  instanceId: 'i-1',
  lastReportSeconds: null,
  idleSeconds: null,
  createdSeconds: 300,
  graceSeconds: null,
  graceEndsInSeconds: null,
  goneSeconds: null,
  api: present,
  path: present,
  worker: present,
}
const whileActive: ObservedSession = {
  ...inProvisioning,
  state: 'active',
  reason: 'relay_ready',
  createdSeconds: 3600,
  lastReportSeconds: 5,
}
/** Grace for lost health whose end has come, without a report since it began. */
const inGrace: ObservedSession = {
  ...whileActive,
  state: 'grace',
  reason: 'health_lost',
  lastReportSeconds: 165,
  graceSeconds: 120,
  graceEndsInSeconds: 0,
}

const anySession: fc.Arbitrary<ObservedSession> = fc
  .record({
    base: fc.constantFrom(inProvisioning, whileActive, inGrace, { ...inGrace, reason: 'stop_requested' as const }),
    instanceId: fc.option(fc.constant('i-1')),
    idleSeconds: fc.option(fc.nat(1200)),
    lastReportSeconds: anyReport,
    createdSeconds: anySeconds,
    graceSeconds: anySeconds,
    graceEndsInSeconds: fc.integer({ min: -200, max: 200 }),
    api: anyPresence,
    path: anyPath,
    worker: anyPresence,
  })
  .map(({ base, graceSeconds, graceEndsInSeconds, ...rest }) => ({
    ...base,
    ...rest,
    ...(base.state === 'grace' ? { graceSeconds, graceEndsInSeconds } : {}),
  }))

describe('the loss of health or of the instance', () => {
  test.each([
    [null, undefined],
    [0, { type: 'outdated' }],
    [44.9, { type: 'outdated' }],
    [45, undefined],
    [200, undefined],
  ])('with a report %s s ago has the objection %j', (lastReportSeconds, objection) => {
    for (const event of ['health_lost', 'instance_gone'] as const)
      expect(findObjection(event, { ...whileActive, lastReportSeconds }, settings)).toEqual(objection)
  })
})

describe('the end of provisioning', () => {
  test.each([
    ['ready', null, { type: 'outdated' }],
    ['ready', 0, undefined],
    ['ready', 200, undefined],
    ['health_restored', null, { type: 'outdated' }],
    ['health_restored', 0, undefined],
    ['provision_failed', null, undefined],
    ['provision_failed', 0, { type: 'reporting' }],
    ['provision_failed', 200, { type: 'reporting' }],
  ] as const)(
    'by %s with a report of the bound instance %s s ago has the objection %j',
    (event, seconds, objection) => {
      const session = { ...inProvisioning, lastReportSeconds: seconds }
      expect(findObjection(event, session, settings)).toEqual(objection)
    },
  )
})

describe('the end of an idle session', () => {
  test.each([
    { idleSeconds: 600, lastReportSeconds: 5, objection: undefined },
    { idleSeconds: 599, lastReportSeconds: 5, objection: { type: 'outdated' } },
    { idleSeconds: 0, lastReportSeconds: 5, objection: { type: 'outdated' } },
    { idleSeconds: null, lastReportSeconds: 5, objection: { type: 'outdated' } },
    { idleSeconds: 600, lastReportSeconds: 45, objection: { type: 'outdated' } },
    { idleSeconds: 600, lastReportSeconds: null, objection: { type: 'outdated' } },
  ])(
    'with $idleSeconds s without a stream and a report $lastReportSeconds s ago: $objection',
    ({ objection, ...observed }) => {
      expect(findObjection('idle', { ...whileActive, ...observed }, settings)).toEqual(objection)
    },
  )
})

const postponed = (forSeconds: number, isExtended: boolean) => ({ type: 'postponed', forSeconds, isExtended }) as const

describe('the provisioning timeout', () => {
  test.each<[string, Partial<ObservedSession>, ReturnType<typeof findObjection>]>([
    ['passes on time', {}, undefined],
    ['is ahead', { createdSeconds: 290 }, postponed(10, false)],
    ['finds that the relay reports', { lastReportSeconds: 1 }, { type: 'reporting' }],
    ['finds that the relay reported just in time', { lastReportSeconds: 299 }, { type: 'reporting' }],
    ['ignores a report from before the session', { lastReportSeconds: 300 }, undefined],
    ['does not count the time without a worker', { worker: presentFor(100) }, postponed(200, true)],
    ['starts again when a worker has just returned', { worker: lastSeen(15.1) }, postponed(300, true)],
    ['counts a worker that was just seen', { worker: lastSeen(15) }, undefined],
    ['does not count the time without an API', { api: presentFor(280) }, postponed(20, true)],
    ['waits for an absent API', { api: lastSeen(10.1) }, postponed(10, true)],
    ['does not count the time in which its path was cut', { path: presentFor(280) }, postponed(20, true)],
    ['waits for a path that is cut', { path: lastSeen(10.1) }, postponed(10, true)],
    ['does not wait for an API before an instance is bound', { instanceId: null, api: presentFor(1) }, undefined],
    ['does not wait for a path before an instance is bound', { instanceId: null, path: lastSeen(60) }, undefined],
    ['does not wait for an absent API without an instance', { instanceId: null, api: lastSeen(60) }, undefined],
    ['is extended by the longest absence', { api: presentFor(280), worker: presentFor(250) }, postponed(50, true)],
    ['is not extended within its own time', { createdSeconds: 200, worker: presentFor(250) }, postponed(100, false)],
  ])('%s', (_, observed, objection) => {
    expect(findObjection('deadline', { ...inProvisioning, ...observed }, settings)).toEqual(objection)
  })
})

describe('the end of grace', () => {
  test.each<[string, Partial<ObservedSession>, ReturnType<typeof findObjection>]>([
    ['passes on time', {}, undefined],
    ['is ahead', { graceSeconds: 100, graceEndsInSeconds: 20 }, postponed(20, false)],
    ['finds that the relay reports', { lastReportSeconds: 119 }, { type: 'reporting' }],
    ['ignores a report from before grace', { lastReportSeconds: 120 }, undefined],
    ['passes for a relay that never reported', { lastReportSeconds: null }, undefined],
    ['starts again after an absence of the API', { api: presentFor(50) }, postponed(70, true)],
    ['passes when the API was present from its beginning on', { api: presentFor(120) }, undefined],
    ['waits for an absent API', { api: lastSeen(10.1) }, postponed(10, true)],
    ['starts again after its path was cut', { path: presentFor(50) }, postponed(70, true)],
    ['waits for a path that is cut', { path: lastSeen(10.1) }, postponed(10, true)],
    ['does not wait for workers', { worker: lastSeen(60) }, undefined],
  ])('for lost health %s', (_, observed, objection) => {
    expect(findObjection('deadline', { ...inGrace, ...observed }, settings)).toEqual(objection)
  })

  test.each<[string, Partial<ObservedSession>, ReturnType<typeof findObjection>]>([
    ['passes on time, even if the relay reports', { lastReportSeconds: 1 }, undefined],
    ['is ahead', { graceEndsInSeconds: 8 }, postponed(8, false)],
    ['is not extended by an absence of the API', { api: presentFor(1) }, undefined],
    ['does not wait for an absent API', { api: lastSeen(60) }, undefined],
    ['does not wait for a path that is cut', { path: lastSeen(60) }, undefined],
  ])('for a stop %s', (_, observed, objection) => {
    const session = { ...inGrace, reason: 'stop_requested' as const, ...observed }
    expect(findObjection('deadline', session, settings)).toEqual(objection)
  })
})

describe('for any observation', () => {
  test('an event that does not depend on reports has no objection', () => {
    const events = ['command', 'transition', 'bound', 'report_expected'] as const
    const anyEvent = fc.constantFrom<RelaySessionEvent['type']>(...events, 'wake', 'max_duration', 'cancelled')
    fc.assert(fc.property(anyEvent, (event) => !isCheckedForObjections(event)))
  })

  test('a postponed deadline is extended exactly when it is later than the row says', () => {
    fc.assert(
      fc.property(anySession, (session) => {
        const objection = findObjection('deadline', session, settings)
        if (objection?.type !== 'postponed') return
        const own =
          session.state === 'provisioning'
            ? settings.provisionTimeoutSeconds - session.createdSeconds
            : (session.graceEndsInSeconds ?? 0)
        expect(objection.forSeconds).toBeGreaterThan(0)
        expect(objection.forSeconds).toBeGreaterThanOrEqual(own)
        expect(objection.isExtended).toBe(objection.forSeconds > own)
      }),
    )
  })

  test('a postponed deadline passes once that time has passed with all processes present', () => {
    const anyPresent = anySeconds.map(presentFor)
    fc.assert(
      fc.property(anySession, anyPresent, anyPresent, anyPresent, (observed, api, path, worker) => {
        const session = { ...observed, api, path, worker }
        const objection = findObjection('deadline', session, settings)
        if (objection?.type !== 'postponed') return
        const seconds = objection.forSeconds
        const later: ObservedSession = {
          ...session,
          lastReportSeconds: session.lastReportSeconds === null ? null : session.lastReportSeconds + seconds,
          createdSeconds: session.createdSeconds + seconds,
          graceSeconds: session.graceSeconds === null ? null : session.graceSeconds + seconds,
          graceEndsInSeconds: session.graceEndsInSeconds === null ? null : 0,
          api: presentFor(api.forSeconds + seconds),
          path: presentFor(path.forSeconds + seconds),
          worker: presentFor(worker.forSeconds + seconds),
        }
        expect(findObjection('deadline', later, settings)).toBeUndefined()
      }),
    )
  })
})

describe('a relay that holds its reports open', () => {
  const quietFor = (lastReportSeconds: number, fields: Partial<ActiveObservation> = {}): ActiveObservation => ({
    region: 'eu',
    activeSeconds: 1000,
    activeInRegion: 1,
    lastReportSeconds,
    api: present,
    path: present,
    ...fields,
  })

  test('is late when the hold and three seconds have passed', () => {
    expect([heldReportSecondsMax(20), lateReportSeconds(20)]).toEqual([20 / 3, 3])
    expect(isLate(quietFor(9), 20)).toBe(false)
    expect(isLate(quietFor(10), 20)).toBe(true)
  })

  test('is not late while its reports could not be received', () => {
    expect(isLate(quietFor(15, { api: lastSeen(60) }), 20)).toBe(false)
    expect(isLate(quietFor(15, { path: presentFor(2) }), 20)).toBe(false)
    expect(isLate(quietFor(15, { activeSeconds: 5 }), 20)).toBe(false)
  })

  test.each<[string, number | null, number | null, boolean]>([
    ['that was not proved', null, 5, true],
    ['that a report has refuted', 8, 5, true],
    ['that no report has refuted', 2, 5, false],
    ['of a relay that never reported', 2, null, false],
  ])('a loss %s', (_, goneSeconds, lastReportSeconds, isOutdated) => {
    const objection = findObjection('relay_gone', { ...whileActive, goneSeconds, lastReportSeconds }, settings)
    expect(objection).toEqual(isOutdated ? { type: 'outdated' } : undefined)
  })
})
