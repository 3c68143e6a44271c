/** The terms of plans on pages. */
import { describe, expect, test } from 'vitest'
import { describeLimit, formatRelays, formatRelayTime } from '../../web/plan-terms.ts'

describe('the terms of plans', () => {
  test('name the relays and the hours of all of them', () => {
    const terms = { hoursPerRelay: 200, enforcement: 'report' } as const
    expect([formatRelays(1), formatRelays(3)]).toEqual(['1 managed relay', '3 managed relays'])
    expect(formatRelayTime(4, terms)).toBe('800 hours of relay time a month')
    expect(formatRelayTime(1, { ...terms, hoursPerRelay: 1 })).toBe('1 hour of relay time a month')
  })

  test('state what happens at the limit, and none where relay time has no limit', () => {
    expect(describeLimit({ hoursPerRelay: 200, enforcement: 'report' })).toMatch(/keep working/)
    expect(describeLimit({ hoursPerRelay: 200, enforcement: 'enforce' })).toMatch(/next cycle/)
    const unlimited = { hoursPerRelay: 0, enforcement: 'enforce' } as const
    expect([formatRelayTime(1, unlimited), describeLimit(unlimited)]).toEqual(['relay time without a limit', null])
  })
})
