/** Notifications: what causes them, who gets them, and what becomes of an endpoint that fails. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { watchUsage } from '../../../activities/billing/usage-jobs.ts'
import { createNotify } from '../../../activities/notifications/notifier.ts'
import { outboxJobs } from '../../../activities/notifications/outbox-jobs.ts'
import { entitlementVersion } from '../../../db/billing/subscriptions.ts'
import { replaceEndpoint } from '../../../db/notifications/endpoints.ts'
import { openMessage } from '../../../db/notifications/outbox.ts'
import { setNotification } from '../../../db/notifications/settings.ts'
import { createEndpointStore } from '../../../db/transactions/record-endpoint-attempts.ts'
import { writeEntitlement } from '../../../db/transactions/write-entitlement.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import type { AccountEntitlement } from '../../../domain/billing/entitlement.ts'
import {
  type AccountNotification,
  type NotificationChannel,
  type NotificationKind,
  notificationKinds,
  notificationsPerHourMax,
} from '../../../domain/notifications/kinds.ts'
import type { Transition } from '../../../domain/relay/session.ts'
import { createEndpointDelivery } from '../../../providers/webhooks/endpoint-delivery.ts'
import { localRules, startReceiver } from '../../support/receiver.ts'
import {
  graceElapsed,
  healthLost,
  provisionTimeout,
  startTransitions,
  stopGrace,
  stopNow,
  transitionsRequest,
} from '../../support/relay-transitions.ts'

const { api, sql, userId, insertSession, insertActiveSession, writePresence, ageSession } = await startTransitions()
const { config, log, sealing } = api.services
const notify = createNotify({ sealing, siteUrl: 'https://relay.example' })
const receiver = await startReceiver()
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const enable = async (channel: NotificationChannel, kinds: readonly NotificationKind[] = notificationKinds) => {
  for (const kind of kinds) await setNotification(sql, userId, { kind, channel }, true)
}
const saveEndpoint = () => replaceEndpoint(sql, sealing, userId, { type: 'webhook', url: receiver.url, secret })

interface Message {
  readonly id: string
  readonly channel: string
  readonly kind: string
  readonly content: Buffer
}
const listMessages = () =>
  sql<
    Message[]
  >`select id, channel, kind, content from outbox_messages where user_id = ${userId} order by created_at, channel`
const listKinds = async () => (await listMessages()).map(({ channel, kind }) => `${kind} by ${channel}`)
/** The notification in a message to the endpoint. */
const notificationOf = (message: Message | undefined) =>
  message && (openMessage(sealing, message) as { notification: AccountNotification }).notification

beforeEach(async () => {
  await sql`delete from outbox_messages`
  await sql`delete from notification_settings`
  await sql`delete from notification_endpoints`
  await sql`delete from relay_sessions`
  await sql`delete from subscriptions`
  await sql`update users set email_verified_at = now(), plan_tier = 'paid', plan_status = 'active', addons = 0,
    surplus_ends_at = null, period_start = now() - interval '9 days', period_end = now() + interval '9 days'`
  receiver.requests.length = receiver.replies.length = 0
  await writePresence('api', 7200)
  await writePresence('worker', 7200)
})

describe('a relay', () => {
  const write = (id: string, version: number, transitions: readonly Transition[], graceSeconds: number | null = null) =>
    writeTransitions(sql, transitionsRequest(id, { version, transitions, graceSeconds }), notify)

  beforeEach(async () => {
    await enable('endpoint')
    await saveEndpoint()
  })

  test('that is lost and ends is notified once each, however often its activities repeat', async () => {
    const id = await insertActiveSession()
    for (let attempt = 0; attempt < 3; attempt += 1) await write(id, 1, [healthLost], 120)
    await Promise.all(Array.from({ length: 4 }, () => write(id, 2, [graceElapsed])))
    const messages = await listMessages()
    expect(messages.map(({ kind }) => kind)).toEqual(['relay_contact_lost', 'relay_ended'])
    const [session] = await sql`select connection_id, grace_ends_at from relay_sessions where id = ${id}`
    expect(notificationOf(messages[0])?.data).toMatchObject({ session_id: id, connection_id: session?.connectionId })
    expect(notificationOf(messages[1])?.data).toMatchObject({
      reason: 'grace_elapsed',
      cause: { reason: 'health_lost', initiator: 'system' },
    })
  })

  test('that is lost together with its machine is notified as ended only', async () => {
    const id = await insertActiveSession()
    await write(id, 1, [healthLost, { to: 'stopped', reason: 'force_disconnected', initiator: 'system' }])
    expect(await listKinds()).toEqual(['relay_ended by webhook'])
  })

  test('that could not be started is notified as ended', async () => {
    const id = await insertSession()
    await ageSession(id, 60)
    await write(id, 0, [provisionTimeout])
    expect(await listKinds()).toEqual(['relay_ended by webhook'])
  })

  test('that its user stopped is not notified: at once, after the stop grace, or while contact was lost', async () => {
    const [atOnce, later, lost] = [
      await insertActiveSession(),
      await insertActiveSession(),
      await insertActiveSession(),
    ]
    await write(atOnce, 1, [stopGrace, stopNow])
    await write(later, 1, [stopGrace], 30)
    await write(later, 2, [graceElapsed])
    await write(lost, 1, [healthLost], 120)
    await write(lost, 2, [stopNow])
    expect(await listKinds()).toEqual(['relay_contact_lost by webhook'])
  })

  test('that support stopped is notified, also after the stop grace', async () => {
    const id = await insertActiveSession()
    await write(id, 1, [{ ...stopGrace, initiator: 'operator' }], 30)
    await write(id, 2, [graceElapsed])
    expect(await listKinds()).toEqual(['relay_ended by webhook'])
  })

  test('whose transition is not committed is not notified', async () => {
    const id = await insertActiveSession()
    const failing = writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, transitions: [healthLost], graceSeconds: 9 }),
      async (tx, user, notification) => {
        await notify(tx, user, notification)
        throw new Error('the process is killed')
      },
    )
    await expect(failing).rejects.toThrow('the process is killed')
    expect(await listKinds()).toEqual([])
  })

  test('of an account without settings asks for no recipients', async () => {
    await sql`delete from notification_settings`
    const id = await insertActiveSession()
    let calls = 0
    const request = transitionsRequest(id, { version: 1, transitions: [healthLost], graceSeconds: 9 })
    await writeTransitions(sql, request, async () => {
      calls += 1
      return false
    })
    expect(calls).toBe(0)
  })

  test('is stated without its address and tokens, and sealed', async () => {
    const id = await insertActiveSession()
    await write(id, 1, [healthLost], 120)
    const [message] = await listMessages()
    expect(message?.content.toString()).not.toContain(id)
    const text = JSON.stringify(notificationOf(message))
    expect(text).not.toMatch(/198\.51\.100\.7|token|sealed|host/)
  })
})

describe('the channels', () => {
  const usage: AccountNotification = {
    kind: 'usage_80',
    timestamp: new Date().toISOString(),
    data: { percent: 80, consumed_seconds: 80, included_seconds: 100, cycle_start: '', cycle_end: '' },
  }

  const at = usage.timestamp
  const dataOf = {
    payment_failed: { subscriptions: ['plan' as const], ends_at: null },
    plan_ending: { ends_at: at },
    relays_surplus: { connection_ids: ['main'], ends_at: at },
    relay_ending_soon: { session_id: '', connection_id: 'main', region: 'local', idle_ends_at: at, ends_at: at },
  }

  test('are off until they are enabled for most kinds, and each is enabled by itself', async () => {
    await saveEndpoint()
    await notify(sql, userId, usage)
    expect(await listKinds()).toEqual([])
    await enable('email', ['usage_80'])
    await enable('endpoint', ['usage_95'])
    await notify(sql, userId, usage)
    expect(await listKinds()).toEqual(['usage_80 by email'])
    await enable('endpoint', ['usage_80'])
    await notify(sql, userId, usage)
    expect(await listKinds()).toEqual(['usage_80 by email', 'usage_80 by email', 'usage_80 by webhook'])
  })

  test('exclude an address that is not verified, and an endpoint that is disabled', async () => {
    await enable('email')
    await enable('endpoint')
    await saveEndpoint()
    await sql`update users set email_verified_at = null`
    await sql`update notification_endpoints set disabled_at = now(), disabled_reason = 'gone'`
    await notify(sql, userId, usage)
    expect(await listKinds()).toEqual([])
  })

  test.each(['payment_failed', 'plan_ending', 'relays_surplus', 'relay_ending_soon'] as const)(
    'get a mail of %s from an account that has chosen nothing, until it turns it off',
    async (kind) => {
      await saveEndpoint()
      const notification = { kind, timestamp: usage.timestamp, data: dataOf[kind] } as AccountNotification
      await notify(sql, userId, notification)
      expect(await listKinds()).toEqual([`${kind} by email`])
      await setNotification(sql, userId, { kind, channel: 'email' }, false)
      await enable('endpoint', [kind])
      await notify(sql, userId, notification)
      expect(await listKinds()).toEqual([`${kind} by email`, `${kind} by webhook`])
    },
  )

  test('get no more than a number of notifications in an hour, but all about payments', async () => {
    await enable('endpoint')
    await saveEndpoint()
    for (let sent = 0; sent < notificationsPerHourMax + 5; sent += 1) await notify(sql, userId, usage)
    expect(await listKinds()).toHaveLength(notificationsPerHourMax)
    await sql`update outbox_messages set created_at = created_at - interval '61 minutes'`
    await notify(sql, userId, usage)
    expect(await listKinds()).toHaveLength(notificationsPerHourMax + 1)
    await sql`update outbox_messages set created_at = now()`
    await setNotification(sql, userId, { kind: 'payment_failed', channel: 'email' }, false)
    await notify(sql, userId, { kind: 'payment_failed', timestamp: usage.timestamp, data: dataOf.payment_failed })
    expect(await listKinds()).toHaveLength(notificationsPerHourMax + 2)
  })
})

describe('a subscription', () => {
  const active: AccountEntitlement = {
    planTier: 'paid',
    planStatus: 'active',
    addons: 0,
    periodStart: null,
    periodEnd: null,
    endsAt: null,
    graceEndsAt: null,
    changesAt: null,
    subscriptions: [],
  }
  const plan = {
    provider: 'sandbox',
    subscriptionId: 's',
    kind: 'plan',
    quantity: 1,
    addons: 0,
    periodStart: null,
    periodEnd: null,
  }
  const deadline = Date.now() + 3_600_000
  const failed = {
    ...active,
    planStatus: 'past_due',
    graceEndsAt: deadline,
    subscriptions: [{ ...plan, status: 'past_due' }],
  } as AccountEntitlement
  const paid = { ...active, subscriptions: [{ ...plan, status: 'active' }] } as AccountEntitlement

  const write = async (entitlement: AccountEntitlement) =>
    writeEntitlement(
      sql,
      {
        userId,
        version: (await entitlementVersion(sql, userId)) ?? -1,
        eventIds: [],
        entitlement,
        at: Date.now(),
        addonNoticeSeconds: 1800,
        trialSeconds: 0,
      },
      notify,
    )

  beforeEach(async () => {
    for (const kind of notificationKinds) await setNotification(sql, userId, { kind, channel: 'email' }, false)
    await enable('endpoint')
    await saveEndpoint()
  })

  test('whose payment fails is mailed of it although nothing was ever chosen', async () => {
    await sql`delete from notification_settings`
    await sql`delete from notification_endpoints`
    await write(paid)
    await write(failed)
    await write(failed)
    expect(await listKinds()).toEqual(['payment_failed by email'])
  })

  test('whose payment fails is notified once with its deadline, and again after a payment', async () => {
    await write(paid)
    await write(failed)
    await write(failed)
    await write(failed)
    const messages = await listMessages()
    expect(messages.map(({ kind }) => kind)).toEqual(['payment_failed'])
    expect(notificationOf(messages[0])?.data).toEqual({
      subscriptions: ['plan'],
      ends_at: new Date(deadline).toISOString(),
    })
    await write(paid)
    await write(failed)
    expect(await listKinds()).toHaveLength(2)
  })

  test('whose add-ons decrease notifies once of the relays that will end, with the time', async () => {
    await sql`update users set addons = 1`
    const ids = [await insertActiveSession(), await insertActiveSession()]
    await ageSession(ids[0] ?? '', 600)
    await write(active)
    await write(active)
    const messages = await listMessages()
    expect(messages.map(({ kind }) => kind)).toEqual(['relays_surplus'])
    const [row] = await sql`select surplus_ends_at from users where id = ${userId}`
    const [newest] = await sql`select connection_id from relay_sessions where id = ${ids[1] ?? ''}`
    expect(notificationOf(messages[0])?.data).toEqual({
      connection_ids: [newest?.connectionId],
      ends_at: row?.surplusEndsAt.toISOString(),
    })
  })
})

test('a threshold of usage is notified once, however often the job runs', async () => {
  await enable('endpoint')
  await saveEndpoint()
  const [session] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, ${randomUUID()}, 'local', 'user') returning id`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    values (${session?.id ?? ''}, ${userId}, now() - interval '3000 seconds', now())`
  const timeBank = { hoursPerRelay: 1, enforcement: 'report', trialSeconds: 0 } as const
  const round = () => watchUsage({ config: { ...config, timeBank }, sql, log, notify })
  await Promise.all([round(), round(), round()])
  await round()
  const messages = await listMessages()
  expect(messages.map(({ kind }) => kind)).toEqual(['usage_80'])
  expect(notificationOf(messages[0])?.data).toMatchObject({
    percent: 80,
    consumed_seconds: 3000,
    included_seconds: 3600,
  })
})

describe('a receiver', () => {
  const endpoints = createEndpointStore(sql, sealing)
  const [job] = outboxJobs({
    sql,
    log,
    sealing,
    deliveries: { webhook: createEndpointDelivery('webhook', endpoints, localRules(receiver)) },
    keepsMails: false,
  })
  const run = () => job?.run()
  const makeDue = () => sql`update outbox_messages set next_attempt_at = now() where next_attempt_at is not null`
  const state = async () => {
    const [row] = await sql`
      select sent_at is not null as is_sent, failed_at is not null as has_failed, last_error, attempts,
        extract(epoch from next_attempt_at - now())::float8 as waits from outbox_messages`
    return row
  }

  beforeEach(async () => {
    await enable('endpoint')
    await saveEndpoint()
    const id = await insertActiveSession()
    await writeTransitions(
      sql,
      transitionsRequest(id, { version: 1, transitions: [healthLost], graceSeconds: 9 }),
      notify,
    )
  })

  test('that is away for a while gets the same message later, once', async () => {
    receiver.replies.push({ status: 503 }, { status: 502 })
    await run()
    expect(await state()).toMatchObject({ isSent: false, hasFailed: false, attempts: 1 })
    expect((await state())?.lastError).toContain('503')
    await makeDue()
    await run()
    await makeDue()
    await run()
    await run()
    expect(await state()).toMatchObject({ isSent: true, attempts: 3, lastError: null })
    expect(new Set(receiver.requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(receiver.requests).toHaveLength(3)
  })

  test('that asks to wait gets the message no earlier', async () => {
    receiver.replies.push({ status: 429, headers: { 'Retry-After': '600' } })
    await run()
    expect((await state())?.waits).toBeGreaterThan(590)
  })

  test('that is gone is disabled, and gets nothing more until it is saved again', async () => {
    receiver.replies.push({ status: 410 })
    await run()
    expect(await state()).toMatchObject({ hasFailed: true })
    const [endpoint] = await sql`select disabled_reason from notification_endpoints where user_id = ${userId}`
    expect(endpoint?.disabledReason).toBe('gone')
    expect(
      await sql`select from audit_entries where user_id = ${userId} and action = 'notification_endpoint_disabled'`,
    ).toHaveLength(1)
  })

  test('that has failed for days is disabled; one success in between counts', async () => {
    const failAfter = async (days: number) => {
      await sql`update notification_endpoints set failing_since = failing_since - make_interval(days => ${days})`
      receiver.replies.push({ status: 500 })
      await makeDue()
      await run()
      return (await sql`select disabled_reason from notification_endpoints`)[0]?.disabledReason
    }
    expect(await failAfter(0)).toBeNull()
    expect(await failAfter(2)).toBeNull()
    expect(await failAfter(2)).toBe('failing')
  })
})
