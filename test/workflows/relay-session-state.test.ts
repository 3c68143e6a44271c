import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type Command,
  decide,
  type Event,
  graceFor,
  isLegal,
  lastsSeconds,
  latestEndAt,
  longestAt,
  type Move,
  moves,
  type Session,
  type State,
  states,
} from '../../workflows/relay-session-state.ts'

const settings = {
  provisionTimeoutSeconds: 300,
  healthTimeoutSeconds: 45,
  graceSeconds: 120,
  stopGraceSeconds: 30,
  maxSessionSeconds: 57_600,
}

const begun: Session = {
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

const anyCommand = fc.constantFrom<Command>('run', 'stop', 'stop_now', 'disconnect')
const anyEvent: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    type: fc.constant('command' as const),
    seq: fc.nat(40),
    command: anyCommand,
    actor: fc.constant('user' as const),
  }),
  fc.record({
    type: fc.constant('transition' as const),
    to: fc.constantFrom<State>(...states),
    requestId: fc.constant('r'),
  }),
  fc.constantFrom<Event>(
    { type: 'ready' },
    { type: 'provision_failed' },
    { type: 'health_lost' },
    { type: 'health_restored' },
    { type: 'instance_gone', instanceId: 'i' },
    { type: 'wake' },
    { type: 'idle' },
    { type: 'deadline' },
    { type: 'longest' },
    { type: 'cancelled' },
    { type: 'bound', instanceId: 'i' },
  ),
)
const anyLife = fc.array(fc.record({ event: anyEvent, waitsSeconds: fc.nat(200) }), { maxLength: 60 })

const deadlineAfter = (session: Session, last: Move, now: number): number | null => {
  const seconds = lastsSeconds(session, last)
  return seconds === null ? null : now + seconds * 1000
}

/** Lives through events as the actor does, and tells each step. */
function live(life: readonly { event: Event; waitsSeconds: number }[]) {
  const steps: { before: Session; event: Event; made: readonly Move[]; after: Session; now: number }[] = []
  let session = begun
  let now = 0
  for (const { event, waitsSeconds } of life) {
    now += waitsSeconds * 1000
    const made = decide(session, event, now)
    const last = made.at(-1)
    const after: Session = {
      ...session,
      commandSeq: event.type === 'command' ? Math.max(event.seq, session.commandSeq) : session.commandSeq,
      ...(last
        ? {
            state: last.to,
            reason: last.reason,
            version: session.version + made.length,
            deadlineAt: deadlineAfter(session, last, now),
          }
        : {}),
      ...(event.type === 'bound' ? { instanceId: event.instanceId } : {}),
    }
    steps.push({ before: session, event, made, after, now })
    session = after
  }
  return steps
}

describe('the table of moves', () => {
  test('has exactly five', () => {
    const pairs = states.flatMap((from) => states.filter((to) => isLegal(from, to)).map((to) => `${from} → ${to}`))
    expect(pairs).toEqual([
      'provisioning → active',
      'provisioning → stopped',
      'active → grace',
      'grace → active',
      'grace → stopped',
    ])
  })

  test('knows each reason only for the moves that it may cause', () => {
    expect(isLegal('active', 'grace', 'relay_ready')).toBe(false)
    expect(isLegal('grace', 'stopped', 'grace_elapsed')).toBe(true)
    expect(Object.keys(moves.stopped)).toEqual([])
  })
})

describe('whatever happens in whatever order', () => {
  test('each move is one of the five, for a reason that is its own', () => {
    fc.assert(
      fc.property(anyLife, (life) => {
        for (const { before, made } of live(life)) {
          let from = before.state
          for (const { to, reason } of made) {
            expect(isLegal(from, to, reason)).toBe(true)
            from = to
          }
        }
      }),
    )
  })

  test('a stopped session stays stopped', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(({ before, made }) => before.state !== 'stopped' || made.length === 0),
      ),
    )
  })

  test('a command is obeyed once, and never after a later one', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(
          ({ before, event, made }) => event.type !== 'command' || event.seq > before.commandSeq || made.length === 0,
        ),
      ),
    )
  })

  test('only grace has a deadline after a move, and grace always has one', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(
          ({ after, made }) => made.length === 0 || (after.deadlineAt !== null) === (after.state === 'grace'),
        ),
      ),
    )
  })

  test('nothing ends for a deadline before it is there', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(
          ({ before, event, made, now }) =>
            event.type !== 'deadline' || made.length === 0 || now >= (before.deadlineAt ?? Infinity),
        ),
      ),
    )
  })

  test('a disconnect ends the session in that very step', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(
          ({ before, event, after }) =>
            event.type !== 'command' ||
            event.command !== 'disconnect' ||
            event.seq <= before.commandSeq ||
            after.state === 'stopped',
        ),
      ),
    )
  })

  test('an instance that is gone ends what waits for it, and nothing that provisions or stops', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(({ before, event, after, made }) => {
          if (event.type !== 'instance_gone') return true
          const isAwaited = before.state === 'active' || graceFor(before, 'health_lost')
          return isAwaited && before.instanceId === 'i' ? after.state === 'stopped' : made.length === 0
        }),
      ),
    )
  })

  test('lost health never brings back a session that was asked to stop', () => {
    fc.assert(
      fc.property(anyLife, (life) =>
        live(life).every(
          ({ before, event, made }) =>
            !(event.type === 'health_restored' && graceFor(before, 'stop_requested')) || made.length === 0,
        ),
      ),
    )
  })
})

describe('the longest duration', () => {
  const active: Session = { ...begun, state: 'active', reason: 'relay_ready', deadlineAt: null }

  test('ends a session at its first idle moment after it, through grace', () => {
    expect(decide(active, { type: 'idle' }, longestAt(active) - 1)).toEqual([])
    expect(decide(active, { type: 'idle' }, longestAt(active)).map((move) => move.to)).toEqual(['grace', 'stopped'])
  })

  test('ends no session in grace for being idle: its own deadline does', () => {
    const grace: Session = { ...active, state: 'grace', reason: 'health_lost', deadlineAt: longestAt(active) + 1 }
    expect(decide(grace, { type: 'idle' }, longestAt(grace))).toEqual([])
  })

  test('ends it at one and a half times that, idle or not', () => {
    expect(longestAt(active)).toBe(16 * 3_600_000)
    expect(latestEndAt(active)).toBe(24 * 3_600_000)
    expect(decide(active, { type: 'longest' }, latestEndAt(active) - 1)).toEqual([])
    expect(decide(active, { type: 'longest' }, latestEndAt(active)).map((move) => move.to)).toEqual([
      'grace',
      'stopped',
    ])
  })
})
