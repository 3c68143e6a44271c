/** What each event causes in each state, as `state reason initiator`, one after the other. */
import { describe, expect, test } from 'vitest'
import {
  decideTransitions,
  detailOf,
  graceSecondsAfter,
  isAwaitingReplacement,
  type RelaySessionEvent,
  type RelaySessionState,
} from '../../../domain/relay/session.ts'

const createdAt = 1_000_000
const deadlineAt = createdAt + 300_000

const provisioning: RelaySessionState = {
  sessionId: 's',
  region: 'eu',
  settings: {
    provisionTimeoutSeconds: 300,
    healthTimeoutSeconds: 45,
    graceSeconds: 120,
    stopGraceSeconds: 30,
    maxSessionSeconds: 3600,
  },
  createdAt,
  state: 'provisioning',
  reason: 'start_requested',
  version: 0,
  commandSeq: 1,
  instanceId: 'i',
  deadlineAt,
}
const states = {
  provisioning,
  active: { ...provisioning, state: 'active', reason: 'relay_ready', deadlineAt: null },
  'grace for lost health': { ...provisioning, state: 'grace', reason: 'health_lost' },
  'grace for a stop': { ...provisioning, state: 'grace', reason: 'stop_requested' },
  stopped: { ...provisioning, state: 'stopped', reason: 'grace_elapsed', deadlineAt: null },
} as const satisfies Record<string, RelaySessionState>
type StateName = keyof typeof states

const transitionsOf = (session: RelaySessionState, event: RelaySessionEvent, now: number) =>
  decideTransitions(session, event, now).map(({ to, reason, initiator }) => `${to} ${reason} ${initiator}`)

const command = (name: 'run' | 'stop' | 'stop_now' | 'disconnect', seq = 2): RelaySessionEvent => ({
  type: 'command',
  seq,
  command: name,
  initiator: 'user',
})
const transition = (to: RelaySessionState['state']): RelaySessionEvent => ({ type: 'transition', to, requestId: 'r' })

/** Without a deadline that is due. A state that is not listed stays as it is. */
const byEvent: readonly (readonly [string, RelaySessionEvent, Partial<Record<StateName, readonly string[]>>])[] = [
  ['a start', command('run'), { 'grace for a stop': ['active start_requested user'] }],
  [
    'a stop',
    command('stop'),
    {
      provisioning: ['stopped stop_requested user'],
      active: ['grace stop_requested user'],
      'grace for lost health': ['stopped stop_requested user'],
      'grace for a stop': ['stopped stop_requested user'],
    },
  ],
  [
    'an immediate stop',
    command('stop_now'),
    {
      provisioning: ['stopped stop_requested user'],
      active: ['grace stop_requested user', 'stopped stop_requested user'],
      'grace for lost health': ['stopped stop_requested user'],
      'grace for a stop': ['stopped stop_requested user'],
    },
  ],
  [
    'a disconnect',
    command('disconnect'),
    {
      provisioning: ['stopped force_disconnected user'],
      active: ['grace force_disconnected user', 'stopped force_disconnected user'],
      'grace for lost health': ['stopped force_disconnected user'],
      'grace for a stop': ['stopped force_disconnected user'],
    },
  ],
  ['a command that was carried out', command('disconnect', 1), {}],
  [
    'the operator’s transition to active',
    transition('active'),
    {
      provisioning: ['active relay_ready operator'],
      'grace for lost health': ['active health_restored operator'],
      'grace for a stop': ['active start_requested operator'],
    },
  ],
  ['the operator’s transition to grace', transition('grace'), { active: ['grace stop_requested operator'] }],
  [
    'the operator’s transition to stopped',
    transition('stopped'),
    {
      provisioning: ['stopped force_disconnected operator'],
      'grace for lost health': ['stopped force_disconnected operator'],
      'grace for a stop': ['stopped force_disconnected operator'],
    },
  ],
  ['the operator’s transition to provisioning', transition('provisioning'), {}],
  ['the first report', { type: 'ready' }, { provisioning: ['active relay_ready relay'] }],
  ['an expected first report', { type: 'report_expected' }, { provisioning: ['active relay_ready relay'] }],
  ['a failed creation', { type: 'provision_failed' }, { provisioning: ['stopped provision_failed system'] }],
  ['lost health', { type: 'health_lost' }, { active: ['grace health_lost system'] }],
  ['restored health', { type: 'health_restored' }, { 'grace for lost health': ['active health_restored relay'] }],
  [
    'the loss of its instance',
    { type: 'instance_gone', instanceId: 'i' },
    {
      active: ['grace health_lost system', 'stopped force_disconnected system'],
      'grace for lost health': ['stopped force_disconnected system'],
    },
  ],
  ['the loss of another instance', { type: 'instance_gone', instanceId: 'other' }, {}],
  [
    'a cancelled workflow',
    { type: 'cancelled' },
    {
      provisioning: ['stopped force_disconnected operator'],
      active: ['grace force_disconnected operator', 'stopped force_disconnected operator'],
      'grace for lost health': ['stopped force_disconnected operator'],
      'grace for a stop': ['stopped force_disconnected operator'],
    },
  ],
  ['an instance that is bound', { type: 'bound', instanceId: 'i' }, {}],
  ['a wake', { type: 'wake' }, {}],
  ['a deadline that is ahead', { type: 'deadline' }, {}],
  ['being idle before the longest duration', { type: 'idle' }, {}],
  ['the longest duration, before it', { type: 'max_duration' }, {}],
]

describe.each(byEvent)('%s', (_, event, expected) => {
  test.each(Object.keys(states) as StateName[])('in the state %s', (name) => {
    expect(transitionsOf(states[name], event, deadlineAt - 1)).toEqual(expected[name] ?? [])
  })
})

describe('at its deadline', () => {
  test.each([
    ['provisioning', ['stopped provision_timeout timer']],
    ['active', []],
    ['grace for lost health', ['stopped grace_elapsed timer']],
    ['grace for a stop', ['stopped grace_elapsed timer']],
    ['stopped', []],
  ] as const)('a session in the state %s', (name, expected) => {
    expect(transitionsOf(states[name], { type: 'deadline' }, deadlineAt)).toEqual(expected)
  })
})

describe('the longest duration', () => {
  const idleEnd = createdAt + 3_600_000
  const latestEnd = createdAt + 5_400_000
  const endOfActive = ['grace force_disconnected timer', 'stopped force_disconnected timer']

  test.each([
    ['provisioning', [], ['stopped force_disconnected timer']],
    ['active', endOfActive, endOfActive],
    ['grace for lost health', [], ['stopped force_disconnected timer']],
    ['grace for a stop', [], ['stopped force_disconnected timer']],
    ['stopped', [], []],
  ] as const)('of a session in the state %s', (name, whenIdle, atLatest) => {
    expect(transitionsOf(states[name], { type: 'idle' }, idleEnd - 1)).toEqual([])
    expect(transitionsOf(states[name], { type: 'idle' }, idleEnd)).toEqual(whenIdle)
    expect(transitionsOf(states[name], { type: 'max_duration' }, latestEnd - 1)).toEqual([])
    expect(transitionsOf(states[name], { type: 'max_duration' }, latestEnd)).toEqual(atLatest)
  })
})

test('the grace after lost health is as long as configured, and so is the one after a stop', () => {
  const graceAfter = (event: RelaySessionEvent) =>
    decideTransitions(states.active, event, createdAt).map((decided) => graceSecondsAfter(states.active, decided))
  expect(graceAfter({ type: 'health_lost' })).toEqual([120])
  expect(graceAfter(command('stop'))).toEqual([30])
  expect(graceAfter(command('disconnect'))).toEqual([30, null])
})

describe('a session whose instances are replaced', () => {
  const settings = { ...provisioning.settings, replacementSeconds: 300 }
  const active: RelaySessionState = { ...states.active, settings }
  const waiting: RelaySessionState = { ...states['grace for lost health'], settings }
  const gone: RelaySessionEvent = { type: 'instance_gone', instanceId: 'i' }

  test('waits for another one when its instance is gone, in a grace that is long enough', () => {
    const [lost] = decideTransitions(active, gone, createdAt)
    expect(lost).toEqual({ to: 'grace', reason: 'health_lost', initiator: 'system' })
    expect(lost && graceSecondsAfter(active, lost)).toBe(300)
    expect(transitionsOf(waiting, gone, createdAt)).toEqual([])
    expect(isAwaitingReplacement(waiting)).toBe(true)
  })

  test('has at least the grace for lost health', () => {
    const short = { ...active, settings: { ...settings, replacementSeconds: 10 } }
    const [lost] = decideTransitions(short, { type: 'health_lost' }, createdAt)
    expect(lost && graceSecondsAfter(short, lost)).toBe(120)
  })

  test('loses its health by a proof about its own instance only', () => {
    expect(transitionsOf(active, { type: 'relay_gone', instanceId: 'i' }, createdAt)).toEqual([
      'grace health_lost system',
    ])
    expect(transitionsOf(active, { type: 'relay_gone', instanceId: 'other' }, createdAt)).toEqual([])
    expect(transitionsOf(waiting, { type: 'relay_gone', instanceId: 'i' }, createdAt)).toEqual([])
  })

  test('ends when it is unstable, and only while it is active', () => {
    expect(transitionsOf(active, { type: 'relay_unstable' }, createdAt)).toEqual([
      'grace health_lost system',
      'stopped force_disconnected system',
    ])
    expect(transitionsOf(waiting, { type: 'relay_unstable' }, createdAt)).toEqual([])
  })

  test('is not one of an earlier version, nor one without replacements', () => {
    for (const replacementSeconds of [undefined, 0]) {
      const session = { ...states['grace for lost health'], settings: { ...provisioning.settings, replacementSeconds } }
      expect(isAwaitingReplacement(session as RelaySessionState)).toBe(false)
    }
  })

  test.each<[RelaySessionEvent, string | null]>([
    [{ type: 'health_lost' }, 'relay_silent'],
    [gone, 'relay_gone'],
    [{ type: 'relay_gone', instanceId: 'i' }, 'relay_gone'],
    [{ type: 'relay_unstable' }, 'relay_unstable'],
    [{ type: 'provision_failed', detail: 'quota' }, 'quota'],
    [{ type: 'provision_failed' }, null],
    [command('stop'), null],
  ])('%o leaves the detail %s', (event, detail) => {
    expect(detailOf(event)).toBe(detail)
  })
})
