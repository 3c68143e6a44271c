/** A made-up run without violations, in which one part can be replaced. Times are milliseconds. */
import type { Evidence, SessionRow, TransitionRow } from './evidence.ts'
import { Journal } from './journal.ts'

export const began = 1_000_000
const userId = 'user-1'
const sessionId = 'session-1'
const instanceId = 'instance-1'

export const session: SessionRow = {
  id: sessionId,
  userId,
  connectionId: 'main',
  state: 'stopped',
  reason: 'grace_elapsed',
  version: 3,
  command: 'stop',
  commandSeq: 2,
  commandDeliveredSeq: 2,
  commandedAt: began + 9_990,
  createdAt: began + 1_000,
  stoppedAt: began + 14_000,
  lastReportAt: began + 13_500,
}

const transition = (
  version: number,
  fromState: string,
  toState: string,
  reason: string,
  at: number,
): TransitionRow => ({
  sessionId,
  version,
  fromState,
  toState,
  reason,
  initiator: 'user',
  at: began + at,
})

export const transitions: readonly TransitionRow[] = [
  transition(1, 'provisioning', 'active', 'relay_ready', 2_000),
  transition(2, 'active', 'grace', 'stop_requested', 10_000),
  transition(3, 'grace', 'stopped', 'grace_elapsed', 14_000),
]

/** The journal of the same run. */
export function createJournal(): Journal {
  const journal = new Journal()
  const start = { userId, connectionId: 'main', key: 'key-1', status: 201, sessionId }
  journal.starts.push({ ...start, answeredAt: began + 1_010 })
  journal.stops.push({ sessionId, by: 'user', sentAt: began + 9_980, answeredAt: began + 10_020 })
  journal.sightings.set(sessionId, {
    provisioningSentAt: began + 1_900,
    runningSeenAt: began + 2_100,
    liveSentAt: began + 13_500,
    stoppedSeenAt: began + 14_500,
  })
  journal.reports.push({ sessionId, instanceId, sentAt: began + 8_000, answeredAt: began + 8_010 })
  const subscription = { user_id: userId, subscription_id: 'sub-1', kind: 'plan' } as const
  deliver(journal, 'event-1', 'subscription.activated', 100, subscription)
  return journal
}

/** Adds an accepted billing event to the journal. */
export function deliver(journal: Journal, id: string, type: string, at: number, data: object): void {
  const body = { type, occurred_at: new Date(began + at).toISOString(), data }
  journal.deliveries.set(id, { id, userId, body, firstSentAt: began + at, acceptedAt: [began + at + 20] })
}

export const eventRow = (eventKey: string, at: number) => ({
  eventKey,
  provider: 'sandbox',
  userId,
  status: 'applied',
  error: null,
  receivedAt: began + at + 10,
  appliedAt: began + at + 50,
})

export const createEvidence = (changes: Partial<Evidence> = {}): Evidence => ({
  journal: createJournal(),
  collectedAt: began + 60_000,
  sessions: [session],
  transitions,
  usage: [{ sessionId, startedAt: began + 2_000, endedAt: began + 14_000 }],
  events: [eventRow('event-1', 100)],
  users: [{ id: userId, planTier: 'paid', addons: 0, isDisabled: false }],
  replacements: [],
  instances: [{ instanceId, sessionId, ownedFrom: began + 1_100, retiredAt: null, goneAt: began + 15_000 }],
  cloudInstances: [
    {
      instanceId,
      sessionId,
      region: 'simulated',
      apiUrl: 'http://127.0.0.1',
      relayAuthSecret: 'secret',
      createdAt: began + 1_200,
      endedAt: began + 14_800,
    },
  ],
  processes: [],
  openWorkflows: [],
  ...changes,
})
