/** The state machine of a relay session: transitions, commands, deadlines. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  commandAfter,
  decideTransitions,
  graceSecondsAfter,
  isEndingSoon,
  isInGraceFor,
  isLegalTransition,
  latestEndAt,
  legalTransitions,
  longestSeconds,
  maxDurationAt,
  type RelayCommand,
  type RelaySessionEvent,
  type RelaySessionState,
  type RelayState,
  relayCommands,
  relayStates,
  type Transition,
} from '../../../domain/relay/session.ts'

const settings = {
  provisionTimeoutSeconds: 300,
  healthTimeoutSeconds: 45,
  graceSeconds: 120,
  stopGraceSeconds: 30,
  maxSessionSeconds: 57_600,
}

const initialState: RelaySessionState = {
  sessionId: 's',
  region: 'eu',
  settings,
  createdAt: 0,
  state: 'provisioning',
  reason: 'start_requested',
  version: 0,
  commandSeq: 1,
  instanceId: null,
  deadlineAt: 300_000,
}

const anyCommand = fc.constantFrom(...relayCommands)
const anyEvent: fc.Arbitrary<RelaySessionEvent> = fc.oneof(
  fc.record({
    type: fc.constant('command' as const),
    seq: fc.nat(40),
    command: anyCommand,
    initiator: fc.constant('user' as const),
  }),
  fc.record({
    type: fc.constant('transition' as const),
    to: fc.constantFrom<RelayState>(...relayStates),
    requestId: fc.constant('r'),
  }),
  fc.constantFrom<RelaySessionEvent>(
    { type: 'ready' },
    { type: 'provision_failed' },
    { type: 'health_lost' },
    { type: 'health_restored' },
    { type: 'instance_gone', instanceId: 'i' },
    { type: 'relay_gone', instanceId: 'i' },
    { type: 'relay_unstable' },
    { type: 'replacement_created', instanceId: 'j' },
    { type: 'wake' },
    { type: 'idle' },
    { type: 'deadline' },
    { type: 'max_duration' },
    { type: 'cancelled' },
    { type: 'bound', instanceId: 'i' },
  ),
)
const anySequence = fc.array(fc.record({ event: anyEvent, delaySeconds: fc.nat(200) }), { maxLength: 60 })

const deadlineAfter = (session: RelaySessionState, transition: Transition, now: number): number | null => {
  const seconds = graceSecondsAfter(session, transition)
  return seconds === null ? null : now + seconds * 1000
}

/** Applies events as the workflow does, and returns each step. */
function applyAll(sequence: readonly { event: RelaySessionEvent; delaySeconds: number }[]) {
  const steps: {
    before: RelaySessionState
    event: RelaySessionEvent
    transitions: readonly Transition[]
    after: RelaySessionState
    now: number
  }[] = []
  let session = initialState
  let now = 0
  for (const { event, delaySeconds } of sequence) {
    now += delaySeconds * 1000
    const transitions = decideTransitions(session, event, now)
    const last = transitions.at(-1)
    const after: RelaySessionState = {
      ...session,
      commandSeq: event.type === 'command' ? Math.max(event.seq, session.commandSeq) : session.commandSeq,
      ...(last
        ? {
            state: last.to,
            reason: last.reason,
            version: session.version + transitions.length,
            deadlineAt: deadlineAfter(session, last, now),
          }
        : {}),
      ...(event.type === 'bound' ? { instanceId: event.instanceId } : {}),
    }
    steps.push({ before: session, event, transitions, after, now })
    session = after
  }
  return steps
}

describe('the legal transitions', () => {
  test('are exactly five', () => {
    const pairs = relayStates.flatMap((from) =>
      relayStates.filter((to) => isLegalTransition(from, to)).map((to) => `${from} → ${to}`),
    )
    expect(pairs).toEqual([
      'provisioning → active',
      'provisioning → stopped',
      'active → grace',
      'grace → active',
      'grace → stopped',
    ])
  })

  test('each have their own reasons', () => {
    expect(isLegalTransition('active', 'grace', 'relay_ready')).toBe(false)
    expect(isLegalTransition('grace', 'stopped', 'grace_elapsed')).toBe(true)
    expect(Object.keys(legalTransitions.stopped)).toEqual([])
  })
})

describe('after any sequence of events', () => {
  test('each transition is legal and has a reason of its own', () => {
    fc.assert(
      fc.property(anySequence, (sequence) => {
        for (const { before, transitions } of applyAll(sequence)) {
          let from = before.state
          for (const { to, reason } of transitions) {
            expect(isLegalTransition(from, to, reason)).toBe(true)
            from = to
          }
        }
      }),
    )
  })

  test('a stopped session stays stopped', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(({ before, transitions }) => before.state !== 'stopped' || transitions.length === 0),
      ),
    )
  })

  test('a command is carried out once, and never after a newer one', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(
          ({ before, event, transitions }) =>
            event.type !== 'command' || event.seq > before.commandSeq || transitions.length === 0,
        ),
      ),
    )
  })

  test('grace has a deadline after a transition, and no other state has one', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(
          ({ after, transitions }) =>
            transitions.length === 0 || (after.deadlineAt !== null) === (after.state === 'grace'),
        ),
      ),
    )
  })

  test('a deadline causes nothing before its time', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(
          ({ before, event, transitions, now }) =>
            event.type !== 'deadline' || transitions.length === 0 || now >= (before.deadlineAt ?? Infinity),
        ),
      ),
    )
  })

  test('a disconnect stops the session in one step', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(
          ({ before, event, after }) =>
            event.type !== 'command' ||
            event.command !== 'disconnect' ||
            event.seq <= before.commandSeq ||
            after.state === 'stopped',
        ),
      ),
    )
  })

  test('a lost instance stops an active session and one in grace for lost health', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(({ before, event, after, transitions }) => {
          if (event.type !== 'instance_gone') return true
          const needsInstance = before.state === 'active' || isInGraceFor(before, 'health_lost')
          return needsInstance && before.instanceId === 'i' ? after.state === 'stopped' : transitions.length === 0
        }),
      ),
    )
  })

  test('restored health does not resume a session in its stop grace', () => {
    fc.assert(
      fc.property(anySequence, (sequence) =>
        applyAll(sequence).every(
          ({ before, event, transitions }) =>
            !(event.type === 'health_restored' && isInGraceFor(before, 'stop_requested')) || transitions.length === 0,
        ),
      ),
    )
  })
})

describe('the longest duration', () => {
  const active: RelaySessionState = { ...initialState, state: 'active', reason: 'relay_ready', deadlineAt: null }

  test('stops an idle session, through grace', () => {
    expect(decideTransitions(active, { type: 'idle' }, maxDurationAt(active) - 1)).toEqual([])
    expect(decideTransitions(active, { type: 'idle' }, maxDurationAt(active)).map(({ to }) => to)).toEqual([
      'grace',
      'stopped',
    ])
  })

  test('leaves an idle session in grace to its own deadline', () => {
    const grace: RelaySessionState = {
      ...active,
      state: 'grace',
      reason: 'health_lost',
      deadlineAt: maxDurationAt(active) + 1,
    }
    expect(decideTransitions(grace, { type: 'idle' }, maxDurationAt(grace))).toEqual([])
  })

  test('stops any session after 1.5 times as long', () => {
    expect(maxDurationAt(active)).toBe(16 * 3_600_000)
    expect(latestEndAt(active)).toBe(24 * 3_600_000)
    expect(decideTransitions(active, { type: 'max_duration' }, latestEndAt(active) - 1)).toEqual([])
    expect(decideTransitions(active, { type: 'max_duration' }, latestEndAt(active)).map(({ to }) => to)).toEqual([
      'grace',
      'stopped',
    ])
  })
})

describe('the warning of the end', () => {
  const hour = 3_600_000

  test.each([
    [16 * 3600, 15 * hour, 24 * hour],
    [2 * 3600, hour, 3 * hour],
    [3600, 0.625 * hour, 1.5 * hour],
    [8, 5000, 12_000],
  ])('of a session of %i s at most begins after %i ms, and the session ends after %i ms', (max, begin, end) => {
    const createdAt = 1000
    expect(longestSeconds(max) * 1000).toBe(end)
    expect([begin - 1, begin, end].map((age) => isEndingSoon(createdAt, max, createdAt + age))).toEqual([
      false,
      true,
      true,
    ])
  })

  test('always begins before an idle session may be stopped, and lasts to the latest end', () => {
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 30 * 86_400 }), (maxSessionSeconds) => {
        const session = { ...initialState, settings: { ...settings, maxSessionSeconds } }
        expect(isEndingSoon(session.createdAt, maxSessionSeconds, maxDurationAt(session) - 1000)).toBe(true)
        expect(isEndingSoon(session.createdAt, maxSessionSeconds, latestEndAt(session) - 1000)).toBe(true)
      }),
    )
  })
})

describe('the command after', () => {
  test.each<[RelayCommand, RelayCommand, RelayCommand]>([
    ['run', 'run', 'run'],
    ['run', 'stop', 'stop'],
    ['run', 'stop_now', 'stop_now'],
    ['run', 'disconnect', 'disconnect'],
    ['stop', 'run', 'run'],
    ['stop', 'stop', 'stop_now'],
    ['stop', 'stop_now', 'stop_now'],
    ['stop', 'disconnect', 'disconnect'],
    ['stop_now', 'run', 'run'],
    ['stop_now', 'stop', 'stop_now'],
    ['stop_now', 'stop_now', 'stop_now'],
    ['stop_now', 'disconnect', 'disconnect'],
    ['disconnect', 'run', 'disconnect'],
    ['disconnect', 'stop', 'disconnect'],
    ['disconnect', 'stop_now', 'disconnect'],
    ['disconnect', 'disconnect', 'disconnect'],
  ])('%s and a request to %s is %s', (current, requested, expected) => {
    expect(commandAfter(current, requested)).toBe(expected)
  })

  const anyRequests = fc.array(anyCommand, { maxLength: 10 })
  const commandAfterAll = (requests: readonly RelayCommand[]) => requests.reduce(commandAfter, 'run')

  test('any requests is a disconnect exactly if one of them is', () => {
    fc.assert(
      fc.property(anyRequests, (requests) => {
        expect(commandAfterAll(requests) === 'disconnect').toBe(requests.includes('disconnect'))
      }),
    )
  })

  test('a start and any number of stops ends the session, at once if there are two', () => {
    fc.assert(
      fc.property(anyRequests, fc.integer({ min: 1, max: 5 }), (requests, stops) => {
        fc.pre(!requests.includes('disconnect'))
        const stopped = commandAfterAll([...requests, 'run', ...Array<RelayCommand>(stops).fill('stop')])
        expect(stopped).toBe(stops === 1 ? 'stop' : 'stop_now')
      }),
    )
  })
})
