/** The channels of messages and the names of their errors. */
import { expect, test } from 'vitest'
import { messageChannels, RetryLaterError, UndeliverableError } from '../../../domain/notifications/outbox.ts'

test('messages have three channels', () => {
  expect(messageChannels).toEqual(['email', 'webhook', 'discord'])
})

test('the errors of a delivery have names, and the one that asks to wait states for how long', () => {
  expect(String(new UndeliverableError('the address does not exist'))).toBe(
    'UndeliverableError: the address does not exist',
  )
  const later = new RetryLaterError('the recipient is busy', 30)
  expect([String(later), later.afterSeconds]).toEqual(['RetryLaterError: the recipient is busy', 30])
})
