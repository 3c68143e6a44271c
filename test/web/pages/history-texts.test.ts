/** The texts of transitions and ends on the history page. */
import { expect, test } from 'vitest'
import type { EndedSession } from '../../../web/api-replies.ts'
import { describeEnd, describeTransition } from '../../../web/pages/history-texts.ts'

const ended = (reason: string, initiator: string, cause?: EndedSession['cause']): EndedSession =>
  ({ state: 'stopped', reason, initiator, cause: cause ?? { reason, initiator } }) as EndedSession
const stoppedBy = (initiator: EndedSession['initiator']) => ({ reason: 'stop_requested', initiator }) as const
const lost = { reason: 'health_lost', initiator: 'system' } as const

test.each([
  [ended('provision_failed', 'system'), 'It could not be started.'],
  [
    { ...ended('provision_failed', 'system'), detail: 'capacity' as const },
    'It could not be started. The provider had no free machine in its region. Try again in a few minutes, or start a relay in another region.',
  ],
  [
    { ...ended('provision_failed', 'system'), detail: 'quota' as const },
    'It could not be started. The service has reached a limit of its account at the provider. Our team has to fix this. Start a relay in another region meanwhile.',
  ],
  [
    { ...ended('provision_failed', 'system'), detail: 'configuration' as const },
    'It could not be started. The region is not set up correctly. Our team has to fix this. Start a relay in another region meanwhile.',
  ],
  [ended('provision_timeout', 'timer'), 'It did not become ready in time.'],
  [ended('stop_requested', 'user'), 'You stopped it.'],
  [ended('stop_requested', 'user', lost), 'You stopped it.'],
  [ended('stop_requested', 'system'), 'It was stopped to make room for a newer relay of yours.'],
  [ended('grace_elapsed', 'timer', stoppedBy('user')), 'You stopped it.'],
  [ended('grace_elapsed', 'timer', stoppedBy('operator')), 'Support stopped it.'],
  [ended('grace_elapsed', 'timer', lost), 'We lost contact with it, and it did not come back.'],
  [ended('force_disconnected', 'system', lost), 'We lost contact with it, and it was ended.'],
  [ended('force_disconnected', 'operator', lost), 'Support disconnected it.'],
  [
    ended('force_disconnected', 'timer'),
    'It reached the longest duration of a relay, or had run long enough to end when no video came in for ten minutes.',
  ],
  [ended('force_disconnected', 'system'), 'It was disconnected because your plan or your account changed.'],
  [ended('a_new_reason', 'user'), 'It ended: a new reason.'],
])('the end of %j is described as “%s”', (session, text) => {
  expect(describeEnd(session)).toBe(text)
})

test('a transition is described with its initiator', () => {
  const transition = { from: 'active', to: 'grace', at: '2026-11-21T12:00:00Z', public_reason: null } as const
  expect(describeTransition({ ...transition, reason: 'stop_requested', initiator: 'user' })).toBe(
    'Stop requested by you',
  )
  expect(describeTransition({ ...transition, reason: 'a_new_reason', initiator: 'moon' })).toBe('a new reason by moon')
})
