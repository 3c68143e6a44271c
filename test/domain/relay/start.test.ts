/** The sessions that a start resumes or displaces. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { relayCommands } from '../../../domain/relay/session.ts'
import { displacedByStart, isStopping, type LiveSession } from '../../../domain/relay/start.ts'

/** The live sessions of a user by the way they count. */
const sessions = {
  running: { command: 'run', countsAgainstLimit: true },
  /** In its stop grace, or active with a stop that is not carried out yet. */
  stopping: { command: 'stop', countsAgainstLimit: false },
  /** Taken to grace by an operator; its last command is still the start. */
  stoppingByOperator: { command: 'run', countsAgainstLimit: false },
  endingNow: { command: 'stop_now', countsAgainstLimit: false },
  disconnected: { command: 'disconnect', countsAgainstLimit: false },
} as const satisfies Record<string, LiveSession>
type Kind = keyof typeof sessions

const live = (...kinds: Kind[]) => kinds.map((kind, index) => ({ ...sessions[kind], id: `${index} ${kind}` }))

test.each<[Kind, boolean]>([
  ['running', false],
  ['stopping', true],
  ['stoppingByOperator', true],
  ['endingNow', true],
  ['disconnected', false],
])('a session that is %s can be resumed by a start: %s', (kind, expected) => {
  expect(isStopping(sessions[kind])).toBe(expected)
})

describe('a start', () => {
  test.each<{ others: Kind[]; limit: number; displaced: string[] }>([
    { others: [], limit: 1, displaced: [] },
    { others: ['stopping'], limit: 1, displaced: ['0 stopping'] },
    { others: ['stoppingByOperator'], limit: 1, displaced: ['0 stoppingByOperator'] },
    { others: ['stopping'], limit: 2, displaced: [] },
    { others: ['stopping', 'stopping'], limit: 2, displaced: ['0 stopping'] },
    { others: ['running', 'stopping', 'stopping'], limit: 3, displaced: ['1 stopping'] },
    { others: ['stopping', 'running', 'stopping'], limit: 2, displaced: ['0 stopping', '2 stopping'] },
    { others: ['endingNow', 'stopping'], limit: 2, displaced: [] },
    { others: ['disconnected', 'stopping'], limit: 2, displaced: [] },
    { others: ['disconnected', 'endingNow'], limit: 1, displaced: [] },
    {
      others: ['stopping', 'stopping', 'stopping', 'stopping'],
      limit: 2,
      displaced: ['0 stopping', '1 stopping', '2 stopping'],
    },
  ])('beside $others with a limit of $limit displaces $displaced', ({ others, limit, displaced }) => {
    expect(displacedByStart(live(...others), limit).map(({ id }) => id)).toEqual(displaced)
  })

  const anyLive = fc.array(
    fc.record({ command: fc.constantFrom(...relayCommands), countsAgainstLimit: fc.boolean(), age: fc.nat() }),
    { maxLength: 8 },
  )
  const anyLimit = fc.integer({ min: 1, max: 4 })
  /** Sessions that run on an instance and do not end by themselves at once. */
  const isStaying = ({ command }: LiveSession) => command === 'run' || command === 'stop'

  test('displaces only sessions that are stopping, the oldest first', () => {
    fc.assert(
      fc.property(anyLive, anyLimit, (others, limit) => {
        const stopping = others.filter((session) => isStaying(session) && isStopping(session))
        const displaced = displacedByStart(others, limit)
        expect(displaced).toEqual(stopping.slice(0, displaced.length))
      }),
    )
  })

  test('displaces as few sessions as the limit allows', () => {
    fc.assert(
      fc.property(anyLive, anyLimit, (others, limit) => {
        const staying = others.filter(isStaying)
        const displaced = displacedByStart(others, limit)
        const together = staying.length - displaced.length + 1
        if (displaced.length > 0) expect(together).toBeGreaterThanOrEqual(limit)
        if (together > limit) expect(displaced).toHaveLength(staying.filter(isStopping).length)
      }),
    )
  })
})
