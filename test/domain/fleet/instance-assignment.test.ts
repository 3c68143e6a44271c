/** The rule that decides whether an instance gets a session. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssignmentObservation, assignmentStatus } from '../../../domain/fleet/instance-assignment.ts'
import { relayCommands, relayReasons, relayStates } from '../../../domain/relay/session.ts'

const assigned: AssignmentObservation = {
  instanceId: 'i-1',
  isRetired: false,
  sessionId: 's-1',
  state: 'provisioning',
  reason: 'start_requested',
  command: 'run',
  boundInstanceId: 'i-1',
  binding: 1,
  boundBinding: 1,
}

describe('an instance', () => {
  test.each<[string, Partial<AssignmentObservation>, string]>([
    ['without a session', { sessionId: null, state: null, command: null, boundInstanceId: null }, 'unassigned'],
    ['bound to its session', {}, 'assigned'],
    ['whose session has no instance yet', { boundInstanceId: null }, 'assigned'],
    ['whose session is active', { state: 'active' }, 'assigned'],
    ['whose session is in its stop grace', { state: 'grace', command: 'stop' }, 'assigned'],
    ['whose session is stopped', { state: 'stopped' }, 'unwanted'],
    ['whose session is disconnected', { command: 'disconnect' }, 'unwanted'],
    ['whose session was deleted', { state: null, command: null, boundInstanceId: null }, 'unwanted'],
    ['whose session has another instance', { boundInstanceId: 'i-2' }, 'unwanted'],
    [
      'that is to take over from a lost one',
      { state: 'grace', reason: 'health_lost', boundInstanceId: 'i-2', binding: 2 },
      'assigned',
    ],
    [
      'whose session has got its lost instance back',
      { state: 'active', reason: 'health_restored', boundInstanceId: 'i-2', binding: 2 },
      'unwanted',
    ],
    ['that is retired', { isRetired: true }, 'unwanted'],
    ['that is retired and has no session', { isRetired: true, sessionId: null }, 'unwanted'],
  ])('%s', (_, observation, status) => {
    expect(assignmentStatus({ ...assigned, ...observation })).toBe(status)
  })

  test('never gets a session that is stopped or has another instance, unless that is lost', () => {
    const observations = fc.record({
      instanceId: fc.constantFrom('i-1', 'i-2'),
      isRetired: fc.boolean(),
      sessionId: fc.constantFrom('s-1', null),
      state: fc.constantFrom(...relayStates, null),
      reason: fc.constantFrom(...relayReasons, null),
      command: fc.constantFrom(...relayCommands, null),
      boundInstanceId: fc.constantFrom('i-1', 'i-2', null),
      binding: fc.constantFrom(1, 2),
      boundBinding: fc.constantFrom(1, 2, null),
    })
    fc.assert(
      fc.property(observations, (observation) => {
        if (assignmentStatus(observation) !== 'assigned') return
        expect(observation).toMatchObject({ isRetired: false, sessionId: 's-1' })
        expect(['provisioning', 'active', 'grace']).toContain(observation.state)
        const isTakingOver = observation.state === 'grace' && observation.reason === 'health_lost'
        if (!isTakingOver) expect([observation.instanceId, null]).toContain(observation.boundInstanceId)
      }),
    )
  })
})
