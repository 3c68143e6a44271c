/** A relay with a stream whose control plane denies its session, as one on a wrong or a restored database does. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  countDenial,
  type Denials,
  judgeDenials,
  noDenials,
  streamPauseMillisMax,
  unknownMillisMax,
} from '../../relay-node/denials.ts'
import { reportUntilEnded } from '../../relay-node/health.ts'
import type { Outcome } from '../../relay-node/health-report.ts'
import type { Log } from '../../relay-node/log.ts'
import { refusal, run, stop } from './control-plane.ts'
import { eventually, givenControlPlane, noAdmissions, secret, startRelay } from './running.ts'

const unknown = refusal(404, 'not_found')
const minuteMillis = 60_000

/** A relay with a stream, after its first accepted report. One minute passes with each report. */
async function givenStream() {
  const plane = await givenControlPlane()
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const logged: Parameters<Log>[] = []
  let stepMillis = minuteMillis
  let millis = 0
  let bytes = 0
  let bytesPerReport = 1_000
  let deniedSince: Date | null = null
  let end: string | undefined
  const ended = reportUntilEnded({
    apiUrl: plane.url,
    authSecret: secret,
    sessionId: randomUUID(),
    instanceId: 'relay-1',
    intervalSeconds: 0.1,
    async onAssigned() {},
    closeStreams: async () => {},
    onDenied(since) {
      deniedSince = since
      millis += stepMillis
    },
    admissions: noAdmissions,
    summarizeIngest: () => {
      bytes += bytesPerReport
      return {
        publishing: true,
        bitrate_kbps: 2_500,
        links: 1,
        players: 0,
        bytes_total: bytes,
        engine: 'none',
        publishing_ms_total: 0,
        peak_bitrate_kbps: 0,
        refused: {},
        stalled_players: 0,
        last_refused: {},
      }
    },
    now: () => millis,
    log: (...entry) => void logged.push(entry),
    signal: ending.signal,
  }).then((reason) => {
    end = reason
    return reason
  })
  /** Resolves after so many more reports, unless the relay has ended. */
  const reports = async (more: number) => {
    const before = plane.reports.length
    await eventually(
      () => end !== undefined || plane.reports.length >= before + more,
      (isOver) => isOver,
    )
  }
  await reports(1)
  return {
    plane,
    ended,
    reports,
    end: () => end,
    deniedSince: () => deniedSince,
    errors: () => logged.filter(([level]) => level === 'error').map(([, message]) => message),
    /** From now on. */
    stopStream() {
      bytesPerReport = 0
    },
    passPerReport(millisPerReport: number) {
      stepMillis = millisPerReport
    },
  }
}

test('goes on while its session is unknown, says so once, and is well again after an accepted report', async () => {
  const relay = await givenStream()
  relay.plane.answers(unknown)
  await relay.reports(20)
  expect(relay.end()).toBeUndefined()
  expect(relay.errors()).toEqual(['the control plane does not know this relay, which goes on with its stream'])
  expect(Date.now() - (relay.deniedSince()?.getTime() ?? 0)).toBeLessThan(60_000)

  relay.plane.answers(run(0.1))
  await relay.reports(2)
  expect(relay.deniedSince()).toBeNull()
})

test('ends when its stream has been over for ten minutes', async () => {
  const relay = await givenStream()
  relay.plane.answers(unknown)
  await relay.reports(8)
  const before = relay.plane.reports.length
  relay.stopStream()
  expect(await relay.ended).toMatch('404 not_found')
  expect((relay.plane.reports.length - before) * minuteMillis).toBeGreaterThanOrEqual(streamPauseMillisMax)
})

test('ends after 24 hours in which its session was unknown', async () => {
  const relay = await givenStream()
  relay.passPerReport(60 * minuteMillis)
  relay.plane.answers(unknown)
  const before = relay.plane.reports.length
  expect(await relay.ended).toMatch('404 not_found')
  // The first denial is at hour 0.
  expect(relay.plane.reports.length - before).toBeGreaterThanOrEqual(25)
})

test('ends after denials of another kind, which count from the last time that its session was unknown', async () => {
  const relay = await givenStream()
  relay.plane.answers(unknown)
  await relay.reports(8)
  const before = relay.plane.reports.length
  relay.plane.answers(refusal(409, 'instance_mismatch'))
  expect(await relay.ended).toMatch('409 instance_mismatch')
  expect(relay.plane.reports.length - before).toBeGreaterThanOrEqual(5)
})

describe.each([
  ['the session is stopped', refusal(409, 'invalid_transition')],
  ['another relay has taken over', refusal(409, 'relay_replaced')],
  ['the relay should stop', stop],
] as const)('when the control plane answers that %s', (_, answer) => {
  test('ends at once, also after it went on', async () => {
    const relay = await givenStream()
    relay.plane.answers(unknown)
    await relay.reports(8)
    expect(relay.end()).toBeUndefined()
    const before = relay.plane.reports.length
    relay.plane.answers(answer)
    await relay.ended
    expect(relay.plane.reports.length - before).toBeLessThanOrEqual(2)
  })
})

test('a relay says in /healthz since when the control plane does not know it', async () => {
  const plane = await givenControlPlane()
  const state = await startRelay({ apiUrl: plane.url }).up()
  const health = async () =>
    (await fetch(`http://127.0.0.1:${state.statsPort}/healthz`)).json() as Promise<{ unknown_since?: string }>
  expect(await health()).toEqual({ status: 'ok', instance_id: 'relay-1' })

  plane.answers(unknown)
  const denied = await eventually(health, (body) => body.unknown_since !== undefined)
  expect(denied).toEqual({ status: 'ok', instance_id: 'relay-1', unknown_since: expect.stringMatching(/Z$/) })

  plane.answers(run())
  await eventually(health, (body) => body.unknown_since === undefined)
})

const outcomes = {
  accepted: { type: 'accepted', nextSeconds: 10 },
  unknown: { type: 'denied', reason: '404', isUnknown: true },
  mismatch: { type: 'denied', reason: '409', isUnknown: false },
  failed: { type: 'failed', reason: 'timeout' },
} as const satisfies Record<string, Outcome>
type Kind = keyof typeof outcomes

/** The rule over a whole list of reports, instead of one report after the other. */
function expected(reports: readonly { kind: Kind; at: number }[], lastDataAt: number | undefined) {
  const answered = reports.filter(({ kind }) => kind !== 'failed')
  const denied = answered.slice(answered.findLastIndex(({ kind }) => kind === 'accepted') + 1)
  const mismatched = denied.slice(denied.findLastIndex(({ kind }) => kind === 'unknown') + 1)
  const isLong = (list: typeof denied) =>
    list.length >= 5 && (list.at(-1)?.at ?? 0) - (list[0]?.at ?? 0) >= minuteMillis
  if (isLong(mismatched)) return 'ending'
  if (!isLong(denied)) return 'waiting'
  const now = denied.at(-1)?.at ?? 0
  const hasStream = lastDataAt !== undefined && now - lastDataAt < streamPauseMillisMax
  return hasStream && now - (denied[0]?.at ?? 0) < unknownMillisMax ? 'going_on' : 'ending'
}

test('denials end a relay only when several came over the whole time, with any failures in between', () => {
  const kinds = fc.constantFrom(...(Object.keys(outcomes) as Kind[]))
  fc.assert(
    fc.property(
      fc.array(fc.record({ kind: kinds, after: fc.oneof(fc.nat(30_000), fc.nat(5 * 3_600_000)) }), { maxLength: 60 }),
      fc.option(fc.nat(unknownMillisMax), { nil: undefined }),
      (reports, lastDataAt) => {
        let now = 0
        let denials: Denials = noDenials
        const seen: { kind: Kind; at: number }[] = []
        for (const { kind, after } of reports) {
          now += after
          denials = countDenial(denials, outcomes[kind], now)
          seen.push({ kind, at: now })
          expect(judgeDenials(denials, { millisMin: minuteMillis, lastDataAt })).toBe(expected(seen, lastDataAt))
        }
      },
    ),
  )
})
