/** The kinds of notifications, their texts, and the ends of relays that cause one. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { usageNoticePercents } from '../../../domain/billing/usage-cycle.ts'
import { isEndByUser, type Notification, notificationPath } from '../../../domain/notifications/kinds.ts'
import { describeNotification, plainFormat, type TextFormat } from '../../../domain/notifications/texts.ts'
import { initiators, provisioningDetails, relayReasons } from '../../../domain/relay/session.ts'

const time = fc
  .date({ min: new Date('2020-01-01'), max: new Date('2099-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())
const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 64 })
const session = { session_id: fc.uuid(), connection_id: name, region: name }
const endCause = { reason: fc.constantFrom(...relayReasons), initiator: fc.constantFrom(...initiators) }

const anyNotification = fc.oneof(
  fc.record({
    kind: fc.constant('relay_contact_lost' as const),
    timestamp: time,
    data: fc.record({ ...session, grace_ends_at: time }),
  }),
  fc.record({
    kind: fc.constant('relay_ending_soon' as const),
    timestamp: time,
    data: fc.record({ ...session, idle_ends_at: time, ends_at: time }),
  }),
  fc.record({ kind: fc.constant('plan_ending' as const), timestamp: time, data: fc.record({ ends_at: time }) }),
  fc.record({
    kind: fc.constant('relay_ended' as const),
    timestamp: time,
    data: fc.record({
      ...session,
      ...endCause,
      cause: fc.option(fc.record(endCause)),
      detail: fc.option(fc.constantFrom(...provisioningDetails)),
      created_at: time,
    }),
  }),
  fc.record({
    kind: fc.constant('stream_lost' as const),
    timestamp: time,
    data: fc.record({ ...session, at: time }),
  }),
  fc.record({
    kind: fc.constant('stream_recovered' as const),
    timestamp: time,
    data: fc.record({ ...session, at: time, bitrate_kbps: fc.nat(), lost_at: time, away_seconds: fc.nat() }),
  }),
  fc.record({
    kind: fc.constant('stream_weak' as const),
    timestamp: time,
    data: fc.record({ ...session, at: time, bitrate_kbps: fc.nat() }),
  }),
  fc.record({
    kind: fc.constant('payment_failed' as const),
    timestamp: time,
    data: fc.record({
      subscriptions: fc.subarray(['plan', 'addon'] as const, { minLength: 1 }),
      ends_at: fc.option(time),
    }),
  }),
  fc.record({
    kind: fc.constant('relays_surplus' as const),
    timestamp: time,
    data: fc.record({ connection_ids: fc.array(name, { minLength: 1, maxLength: 4 }), ends_at: time }),
  }),
  ...usageNoticePercents.map((percent) =>
    fc.record({
      kind: fc.constant(`usage_${percent}` as const),
      timestamp: time,
      data: fc.record({
        percent: fc.constant(percent),
        consumed_seconds: fc.nat(),
        included_seconds: fc.nat(),
        cycle_start: time,
        cycle_end: time,
      }),
    }),
  ),
  fc.record({ kind: fc.constant('test' as const), timestamp: time, data: fc.constant({}) }),
) as fc.Arbitrary<Notification>

describe('the text of a notification', () => {
  test('has a title and sentences, without gaps', () => {
    fc.assert(
      fc.property(anyNotification, (notification) => {
        const { title, paragraphs } = describeNotification(notification, { ...plainFormat, name: () => 'name' })
        for (const text of [title, ...paragraphs]) {
          expect(text.trim()).toBe(text)
          expect(text).not.toMatch(/undefined|null|NaN|Invalid|\[object|^$| {2}/)
        }
        expect(paragraphs.length).toBeGreaterThan(0)
      }),
    )
  })

  test('contains names and times only as its channel formats them', () => {
    const marked: TextFormat = { name: (text) => `<name>${'x'.repeat(text.length)}`, time: () => '<time>' }
    fc.assert(
      fc.property(anyNotification, fc.uuid(), (notification, id) => {
        const secretName = JSON.parse(
          JSON.stringify(notification, (key, value) =>
            key === 'connection_id' || key === 'region' ? id : key === 'connection_ids' ? [id] : value,
          ),
        ) as Notification
        const { title, paragraphs } = describeNotification(secretName, marked)
        expect([title, ...paragraphs].join(' ')).not.toMatch(new RegExp(`${id}|\\d{4}-\\d\\d-\\d\\dT`))
      }),
    )
  })

  test('states the deadline of a failed payment, a plan, surplus relays and a relay', () => {
    fc.assert(
      fc.property(anyNotification, (notification) => {
        const deadline =
          notification.kind === 'payment_failed' ||
          notification.kind === 'plan_ending' ||
          notification.kind === 'relays_surplus' ||
          notification.kind === 'relay_ending_soon'
            ? notification.data.ends_at
            : notification.kind === 'relay_contact_lost'
              ? notification.data.grace_ends_at
              : null
        const text = describeNotification(notification, plainFormat).paragraphs.join(' ')
        if (deadline !== null) expect(text).toContain(plainFormat.time(deadline))
      }),
    )
  })
})

test('every kind leads to the page of the site that shows more about it', () => {
  const pathOf = ({ kind, data }: Notification) => {
    if (['relay_contact_lost', 'relay_ending_soon', 'relays_surplus'].includes(kind)) return '/relays'
    if (kind === 'relay_ended') return `/history/${data.session_id}`
    if (kind === 'stream_lost' || kind === 'stream_recovered' || kind === 'stream_weak')
      return `/history/${data.session_id}?at=${data.at}`
    if (kind === 'payment_failed' || kind === 'plan_ending') return '/account'
    return kind === 'test' ? '/account/notifications' : '/usage'
  }
  fc.assert(
    fc.property(anyNotification, (notification) => {
      expect(notificationPath(notification)).toBe(pathOf(notification))
    }),
  )
})

describe('an end of a relay', () => {
  test.each([
    [{ reason: 'stop_requested', initiator: 'user' }, null, true],
    [{ reason: 'grace_elapsed', initiator: 'timer' }, { reason: 'stop_requested', initiator: 'user' }, true],
    [{ reason: 'force_disconnected', initiator: 'system' }, { reason: 'stop_requested', initiator: 'user' }, true],
    [{ reason: 'grace_elapsed', initiator: 'timer' }, { reason: 'stop_requested', initiator: 'operator' }, false],
    [{ reason: 'grace_elapsed', initiator: 'timer' }, { reason: 'health_lost', initiator: 'system' }, false],
    [{ reason: 'force_disconnected', initiator: 'system' }, { reason: 'force_disconnected', initiator: 'user' }, false],
    [{ reason: 'force_disconnected', initiator: 'operator' }, null, false],
    [{ reason: 'provision_failed', initiator: 'system' }, null, false],
  ] as const)('%j after %j was requested by the user: %s', (end, cause, expected) => {
    expect(isEndByUser(end, cause)).toBe(expected)
  })
})
