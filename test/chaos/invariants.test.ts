/** The invariants of the chaos run, each broken once in a made-up journal. */
import { describe, expect, test } from 'vitest'
import type { Evidence } from './evidence.ts'
import { began, createEvidence, createJournal, deliver, eventRow, session, transitions } from './evidence-samples.ts'
import { findViolations } from './invariants.ts'
import type { Journal, RelayFault } from './journal.ts'

const namesOf = (changes: Partial<Evidence>): string[] => [
  ...new Set(findViolations(createEvidence(changes)).map(({ invariant }) => invariant)),
]

/** The evidence with a changed journal. */
const journalWith = (change: (journal: Journal) => void): Partial<Evidence> => {
  const journal = createJournal()
  change(journal)
  return { journal }
}

const [instance] = createEvidence().instances
const [cloudInstance] = createEvidence().cloudInstances
const [interval] = createEvidence().usage
if (!instance || !cloudInstance || !interval) throw new Error('the sample lacks a row')
const other = { ...session, id: 'session-2' }
const [first, second, third] = transitions
if (!first || !second || !third) throw new Error('the sample lacks a transition')

const startOf = (sessionId: string, key: string) => (journal: Journal) =>
  void journal.starts.push({ userId: 'user-1', connectionId: 'main', key, answeredAt: began, status: 201, sessionId })
const replaced = (changes: object) => transitions.with(2, { ...third, ...changes })

test('a run that keeps all rules has no violation', () => {
  expect(findViolations(createEvidence())).toEqual([])
})

describe('each accepted start ends with a reason', () => {
  const name = 'each accepted start ends with a reason'

  test('an accepted start without a row is a violation', () => {
    expect(namesOf(journalWith(startOf('session-2', 'key-2')))).toContain(name)
  })

  test('a session that is still live is a violation', () => {
    const live = { ...session, state: 'active', reason: 'relay_ready', stoppedAt: null, version: 1 }
    expect(namesOf({ sessions: [live], transitions: [first] })).toContain(name)
  })

  test('one key for two sessions is a violation', () => {
    const rows = { sessions: [session, { ...other, connectionId: 'main', createdAt: began + 20_000 }] }
    expect(namesOf({ ...journalWith(startOf('session-2', 'key-1')), ...rows })).toContain(name)
  })
})

test('two live sessions of a connection are a violation', () => {
  expect(namesOf({ sessions: [session, { ...other, createdAt: began + 5_000 }] })).toContain(
    'a connection has one live session at most',
  )
})

describe('an account starts no more relays than it may use', () => {
  const name = 'an account starts no more relays than it may use'

  test('a start beyond the plan is a violation', () => {
    const second = { ...other, connectionId: 'second', createdAt: began + 5_000 }
    expect(namesOf({ sessions: [session, second] })).toContain(name)
  })

  test('a start within the add-ons is none', () => {
    const journal = createJournal()
    deliver(journal, 'event-2', 'addon.updated', 200, { subscription_id: 'addon', kind: 'addon', quantity: 1 })
    const second = { ...other, connectionId: 'second', createdAt: began + 5_000 }
    const events = [eventRow('event-1', 100), eventRow('event-2', 200)]
    expect(namesOf({ journal, events, sessions: [session, second] })).not.toContain(name)
  })
})

describe('transitions are legal, each once, and without gaps', () => {
  const name = 'transitions are legal, each once, and without gaps'

  test.each([
    ['a transition that is not one of the five', [first, { ...second, toState: 'stopped' }]],
    ['a gap between the versions', [first, { ...second, version: 3 }, { ...third, version: 4 }]],
    ['a transition that does not follow the one before it', replaced({ fromState: 'active', toState: 'grace' })],
    ['a transition that is earlier than the one before it', replaced({ at: began + 9_000 })],
    ['a session whose row is behind its transitions', [...transitions, { ...third, version: 4 }]],
    ['a session whose row names another reason', replaced({ reason: 'stop_requested' })],
  ])('%s is a violation', (_, rows) => {
    expect(namesOf({ transitions: rows })).toContain(name)
  })
})

describe('usage is the time that the relay ran', () => {
  const name = 'usage is the time that the relay ran'

  test.each([
    ['no interval', []],
    ['two intervals', [interval, interval]],
    ['an open interval', [{ ...interval, endedAt: null }]],
    ['an interval that begins too early', [{ ...interval, startedAt: began + 900 }]],
    ['an interval that ends too late', [{ ...interval, endedAt: began + 15_100 }]],
    ['an interval that ends too early', [{ ...interval, endedAt: began + 12_900 }]],
  ])('%s is a violation', (_, usage) => {
    expect(namesOf({ usage })).toContain(name)
  })

  test('a relay that was seen live after its charged time is a violation, whatever the transitions state', () => {
    const journal = createJournal()
    const sighting = journal.sightings.get(session.id)
    if (sighting) sighting.liveSentAt = began + 20_500
    expect(namesOf({ journal })).toContain(name)
  })

  test('the time between two relays of a session is not charged', () => {
    const replacements = [
      { sessionId: session.id, instanceId: 'instance-1', lastReportAt: began + 5_000, boundAt: began + 8_000 },
    ]
    const { startedAt, endedAt } = interval
    const halves = (until: number, from: number) => [
      { ...interval, startedAt, endedAt: began + until },
      { ...interval, startedAt: began + from, endedAt },
    ]
    expect(namesOf({ replacements, usage: halves(5_000, 8_100) })).not.toContain(name)
    expect(namesOf({ replacements, usage: halves(8_000, 8_100) })).toContain(name)
    expect(namesOf({ replacements, usage: halves(5_000, 5_100) })).toContain(name)
    expect(namesOf({ replacements, usage: [interval] })).toContain(name)
  })

  test('a relay that died is charged for 10 s after its last report', () => {
    const died = { ...session, lastReportAt: began + 10_000, stoppedAt: began + 50_000 }
    const late = replaced({ at: began + 50_000 })
    const sessions = { ...journalWith(({ sightings }) => sightings.clear()), sessions: [died], transitions: late }
    const charged = (endedAt: number) => ({ ...sessions, usage: [{ ...interval, endedAt: began + endedAt }] })
    expect(namesOf(charged(20_000))).not.toContain(name)
    expect(namesOf(charged(18_000))).toContain(name)
    expect(namesOf(charged(52_000))).toContain(name)
  })
})

describe('each accepted billing event has its effect once', () => {
  const name = 'each accepted billing event has its effect once'
  const [event] = createEvidence().events
  if (!event) throw new Error('the sample lacks an event')

  test.each([
    ['an accepted event without a row', { events: [] }],
    ['an accepted event with two rows', { events: [event, event] }],
    ['an accepted event that is not applied', { events: [{ ...event, status: 'parked' }] }],
    ['an accepted event of another user', { events: [{ ...event, userId: 'user-2' }] }],
    ['an event that was never sent', { events: [event, { ...event, eventKey: 'event-9' }] }],
    ['a plan that no event gives', { users: [{ id: 'user-2', planTier: 'paid', addons: 0, isDisabled: false }] }],
    ['a plan that is missing', { users: [{ id: 'user-1', planTier: 'free', addons: 0, isDisabled: false }] }],
    ['add-ons that no event gives', { users: [{ id: 'user-1', planTier: 'paid', addons: 1, isDisabled: false }] }],
  ])('%s is a violation', (_, changes) => {
    expect(namesOf(changes)).toContain(name)
  })

  test('a plan that outlasts the payment grace period is a violation', () => {
    const journal = createJournal()
    deliver(journal, 'event-2', 'payment.failed', 300, { subscription_id: 'sub-1', kind: 'plan', invoice_id: 'inv-1' })
    expect(namesOf({ journal, events: [eventRow('event-1', 100), eventRow('event-2', 300)] })).toContain(name)
  })
})

describe('deadlines are held', () => {
  const name = 'deadlines are held'

  test.each([
    ['a stop grace that ends too early', replaced({ at: began + 12_000 })],
    ['a stop grace that ends too late', replaced({ at: began + 60_000 })],
    ['a relay that stays in provisioning', [{ ...first, at: began + 70_000 }]],
  ])('%s is a violation', (_, rows) => {
    expect(namesOf({ transitions: rows })).toContain(name)
  })

  test('health that is lost right after a report is a violation', () => {
    const rows = [first, { ...second, reason: 'health_lost' }, { ...third, at: began + 16_000 }]
    expect(namesOf({ transitions: rows })).toContain(name)
  })

  test('health that is lost with the instance is none', () => {
    const rows = [first, { ...second, reason: 'health_lost' }, { ...third, at: began + 30_000 }]
    const cloudInstances = [{ ...cloudInstance, endedAt: began + 9_000 }]
    expect(namesOf({ transitions: rows, cloudInstances })).not.toContain(name)
  })

  test('a relay that runs on after the plan ended is a violation, and not while the service is away', () => {
    const journal = createJournal()
    deliver(journal, 'event-2', 'subscription.downgraded', 3_000, { subscription_id: 'sub-1', kind: 'plan' })
    const late = replaced({ at: began + 60_000 })
    const evidence = {
      journal,
      transitions: late,
      events: [eventRow('event-1', 100), eventRow('event-2', 3_000)],
      sessions: [{ ...session, stoppedAt: began + 60_000 }],
    }
    expect(namesOf(evidence)).toContain(name)
    journal.faults.push({
      kind: 'kill',
      target: 'postgres',
      from: began + 4_000,
      healedAt: began + 45_000,
      until: began + 50_000,
    })
    expect(namesOf(evidence)).not.toContain(name)
  })
})

describe('silence ends no session while its relay cannot report', () => {
  const name = 'silence ends no session while its relay cannot report'
  const cut = (journal: Journal, from: number, until: number) =>
    void journal.faults.push({
      kind: 'cut',
      target: 'report-path',
      from: began + from,
      healedAt: began + until,
      until: began + until + 500,
    })
  /** Its relay reports last after 8 s, and its session loses its health at a time and ends later. */
  const lostAt = (at: number, endedAt = at + 40_000) => [
    first,
    { ...second, reason: 'health_lost', at: began + at },
    { ...third, at: began + endedAt },
  ]
  const running = { cloudInstances: [{ ...cloudInstance, endedAt: began + 55_000 }] }
  const lastReport = { ...running, sessions: [{ ...session, lastReportAt: began + 8_000 }] }

  test.each([
    ['a session that loses its health while the path of reports is cut', 9_000, 25_000, lostAt(15_500)],
    ['one that loses it as soon as the path is open again', 9_000, 25_000, lostAt(26_000)],
    ['one whose grace ends while the path is cut', 15_500, 45_000, lostAt(15_000, 21_000)],
    ['one whose grace ends as soon as the path is open again', 15_500, 25_000, lostAt(15_000, 26_000)],
  ])('%s is a violation', (_, from, until, rows) => {
    expect(
      namesOf({ ...lastReport, ...journalWith((journal) => cut(journal, from, until)), transitions: rows }),
    ).toContain(name)
  })

  test.each([
    ['was silent before the path was cut', 13_500, 25_000, lostAt(15_500)],
    ['stays silent after it', 9_000, 25_000, lostAt(31_500)],
    ['is lost before it', 15_000, 25_000, lostAt(14_500)],
  ])('a session whose relay %s may lose its health', (_, from, until, rows) => {
    expect(
      namesOf({ ...lastReport, ...journalWith((journal) => cut(journal, from, until)), transitions: rows }),
    ).not.toContain(name)
  })

  test('a silence begins with the last report, also with one that was sent during the cut', () => {
    const journal = createJournal()
    cut(journal, 9_000, 25_000)
    const report = { sessionId: session.id, instanceId: instance.instanceId }
    journal.reports.push({ ...report, sentAt: began + 24_000, answeredAt: began + 25_010 })
    const sessions = { ...running, sessions: [{ ...session, lastReportAt: null }] }
    expect(namesOf({ ...sessions, journal, transitions: lostAt(26_500) })).toContain(name)
    expect(namesOf({ ...sessions, journal, transitions: lostAt(31_500) })).not.toContain(name)
  })

  test('a session whose relay is gone ends during the cut', () => {
    const journal = createJournal()
    cut(journal, 9_000, 25_000)
    const evidence = { ...lastReport, journal, transitions: lostAt(15_500, 15_600) }
    expect(namesOf(evidence)).toContain(name)
    const cloudInstances = [{ ...cloudInstance, endedAt: began + 12_000 }]
    expect(namesOf({ ...evidence, cloudInstances })).not.toContain(name)
    const { instanceId } = instance
    journal.relayFaults.push({ type: 'kill', sessionId: session.id, instanceId, at: began + 12_000 })
    expect(namesOf(evidence)).not.toContain(name)
  })
})

describe('only a relay with a fault is replaced', () => {
  const name = 'only a relay with a fault is replaced'
  const { instanceId } = instance
  const rows = [
    first,
    { ...second, reason: 'health_lost', at: began + 9_000 },
    { ...third, toState: 'active', at: began + 9_500 },
  ]
  const replacement = { sessionId: session.id, instanceId, lastReportAt: began + 5_000, boundAt: began + 9_400 }
  const namesAfter = (fault: Partial<RelayFault>) =>
    namesOf({
      transitions: rows,
      replacements: [replacement],
      ...journalWith(({ relayFaults }) => {
        relayFaults.push({ type: 'cut', sessionId: session.id, instanceId, at: began + 5_000, ...fault })
      }),
    })

  test.each([
    ['of another instance', { instanceId: 'instance-2' }],
    ['after the loss', { at: began + 9_100 }],
    ['that ended long before the loss', { at: began, until: began + 3_000 }],
  ])('a replacement with a fault %s only is a violation', (_, fault) => {
    expect(namesAfter(fault)).toContain(name)
  })

  test('a replacement after a fault is none', () => {
    expect(namesAfter({})).not.toContain(name)
    expect(namesAfter({ until: began + 8_000 })).not.toContain(name)
  })
})

describe('no instance is left, and no session has two', () => {
  const name = 'no instance is left, and no session has two'

  test.each([
    ['an instance that exists', { cloudInstances: [{ ...cloudInstance, endedAt: null }] }],
    ['a process that runs', { processes: [{ instanceId: 'instance-9', sessionId: null }] }],
    ['a row whose instance is gone', { instances: [{ ...instance, goneAt: null }] }],
    ['an instance without a row', { instances: [] }],
    [
      'two instances of a session at once',
      {
        instances: [instance, { ...instance, instanceId: 'instance-2' }],
        cloudInstances: [cloudInstance, { ...cloudInstance, instanceId: 'instance-2' }],
      },
    ],
    [
      'two instances of a session at once that are processes',
      { instances: [instance, { ...instance, instanceId: 'instance-2' }] },
    ],
  ])('%s is a violation', (_, changes) => {
    expect(namesOf(changes)).toContain(name)
  })
})

describe('an ended sign-in gives no access', () => {
  const useAt = (sentAt: number, status: number) =>
    namesOf(
      journalWith(({ revokedUses }) => {
        const ended = { userId: 'user-1', ended: 'signed out', endedAt: began }
        revokedUses.push({ ...ended, sentAt: began + sentAt, status })
      }),
    )

  test('an access token that is accepted after its end is a violation', () => {
    expect(useAt(5, 200)).toEqual(['an ended sign-in gives no access'])
    expect(useAt(5, 401)).toEqual([])
  })
})

describe('nothing is stuck', () => {
  test.each([
    ['a workflow of a stopped session', { openWorkflows: ['relay-session/session-1'] }],
    ['a workflow without a session', { openWorkflows: ['relay-session/session-9'] }],
    ['a command that is not delivered', { sessions: [{ ...session, commandDeliveredSeq: 1 }] }],
    ['an event that is pending', { events: [{ ...eventRow('event-1', 100), status: 'pending' }] }],
  ])('%s is a violation', (_, changes) => {
    expect(namesOf(changes)).toContain('nothing is stuck')
  })
})

test('a reply that no client has to expect is a violation', () => {
  expect(namesOf(journalWith(({ unexpected }) => void unexpected.set('start got 500 internal_error', began)))).toEqual([
    'replies are the documented ones',
  ])
})
