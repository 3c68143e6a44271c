/** The sentences that say why a relay ended. */
import { describe, expect, test } from 'vitest'
import { describeRelayEnd, formatAway } from '../../../domain/relay/end-texts.ts'
import { initiators, legalTransitions, provisioningDetails } from '../../../domain/relay/session.ts'

type End = Parameters<typeof describeRelayEnd>[0]

const textOf = (end: Partial<End>) =>
  describeRelayEnd({ reason: 'stop_requested', initiator: 'user', cause: null, detail: null, ...end })

const stopped = { reason: 'stop_requested', initiator: 'user' }
const lost = { reason: 'health_lost', initiator: 'timer' }

describe('the text of the end of a relay', () => {
  test('exists for each legal end, and is a sentence', () => {
    const reasons = [...legalTransitions.provisioning.stopped, ...legalTransitions.grace.stopped]
    for (const reason of reasons)
      for (const initiator of initiators)
        for (const cause of [null, stopped, lost])
          for (const detail of [null, ...provisioningDetails])
            expect(textOf({ reason, initiator, cause, detail })).toMatch(/^(It(?! ended:)|You|We|Support) .*\.$/)
  })

  test('names who stopped or disconnected it', () => {
    for (const reason of ['stop_requested', 'force_disconnected']) {
      const texts = initiators.map((initiator) => textOf({ reason, initiator }))
      expect(texts[initiators.indexOf('user')]).toMatch(/^You /)
      expect(texts[initiators.indexOf('operator')]).toMatch(/^Support /)
    }
    expect(textOf({ reason: 'force_disconnected', initiator: 'timer' })).not.toBe(
      textOf({ reason: 'force_disconnected', initiator: 'system' }),
    )
  })

  test('after a grace period names what the grace period was for', () => {
    const afterGrace = (cause: End['cause']) => textOf({ reason: 'grace_elapsed', initiator: 'timer', cause })
    expect(afterGrace(stopped)).toBe(textOf({}))
    expect(afterGrace({ ...stopped, initiator: 'operator' })).toBe(textOf({ initiator: 'operator' }))
    expect(afterGrace(lost)).toContain('lost contact')
    expect(afterGrace(null)).toBe(textOf({ initiator: 'of a later version' }))
  })

  test('a disconnect by the system after lost contact names the lost contact', () => {
    const disconnect = (initiator: string, cause: End['cause']) =>
      textOf({ reason: 'force_disconnected', initiator, cause })
    expect(disconnect('system', lost)).toContain('lost contact')
    expect(disconnect('system', stopped)).toBe(disconnect('system', null))
    expect(disconnect('system', null)).not.toContain('lost contact')
    expect(disconnect('operator', lost)).toBe(disconnect('operator', null))
  })

  test('of a session whose relays failed again and again names that, and what to do', () => {
    const end = { reason: 'force_disconnected', initiator: 'system', cause: lost, detail: 'relay_unstable' }
    expect(textOf(end)).toMatch(/^We replaced it three times .* Start a new relay/)
  })

  test('of a failed start contains what stood in the way, if that is stored', () => {
    const failure = (detail: string | null) => textOf({ reason: 'provision_failed', initiator: 'system', detail })
    const known = provisioningDetails.map(failure)
    expect(new Set(known).size).toBe(provisioningDetails.length)
    for (const text of known) expect(text.startsWith(`${failure(null)} `)).toBe(true)
    expect(failure('a detail of a later version')).toBe(failure(null))
    expect(textOf({ reason: 'provision_timeout' })).not.toBe(failure(null))
  })

  test('of a reason or initiator of a later version is a sentence too', () => {
    expect(textOf({ reason: 'paused_by_provider' })).toBe('It ended: paused by provider.')
    expect(textOf({ initiator: 'robot' })).toBe('It was stopped.')
    expect(textOf({ reason: 'force_disconnected', initiator: 'robot' })).toBe('It was disconnected.')
  })
})

test.each([
  [0, '1 s'],
  [5.6, '6 s'],
  [59.7, '1 min'],
  [125, '2 min 5 s'],
])('a stream that was away for %d s was so for %s', (seconds, text) => {
  expect(formatAway(seconds)).toBe(text)
})
