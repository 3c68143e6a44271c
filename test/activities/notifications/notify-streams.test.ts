/** Notifications of streams that are lost, weak or back: from a relay's report to the mail server and the webhook. */
import { beforeEach, describe, expect, test } from 'vitest'
import { notificationJobs } from '../../../activities/notifications/notification-jobs.ts'
import { createNotify } from '../../../activities/notifications/notifier.ts'
import { outboxJobs } from '../../../activities/notifications/outbox-jobs.ts'
import { replaceEndpoint } from '../../../db/notifications/endpoints.ts'
import { setNotification, setStreamDelay } from '../../../db/notifications/settings.ts'
import { createEndpointStore } from '../../../db/transactions/record-endpoint-attempts.ts'
import { writeTransitions } from '../../../db/transactions/write-transitions.ts'
import {
  isAboutStream,
  type NotificationChannel,
  type NotificationKind,
  notificationKinds,
  notificationsPerHourMax,
  streamNotificationsPerHourMax,
} from '../../../domain/notifications/kinds.ts'
import type { StreamEventKind } from '../../../domain/relay/stream-events.ts'
import { createMailDelivery } from '../../../providers/mail/delivery.ts'
import { createEndpointDelivery } from '../../../providers/webhooks/endpoint-delivery.ts'
import { localRules, startReceiver } from '../../support/receiver.ts'
import {
  healthLost,
  startTransitions,
  stopGrace,
  stopNow,
  transitionsRequest,
} from '../../support/relay-transitions.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'

const smtp = await startSmtpServer()
const { api, sql, userId, insertActiveSession } = await startTransitions({ SVC_SMTP_URL: smtp.url })
const { config, log, sealing } = api.services
const receiver = await startReceiver()
const notify = createNotify({ sealing, siteUrl: 'https://relay.example' })
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const kinds = notificationKinds.filter(isAboutStream)

const enable = async (channel: NotificationChannel, enabled: readonly NotificationKind[] = kinds) => {
  for (const kind of enabled) await setNotification(sql, userId, { kind, channel }, true)
}

/** Runs the job once, as a newly started worker does. */
const round = (by = notify) =>
  notificationJobs({ config, sql, sealing, notify: by })
    .find(({ name }) => name === 'notify_streams')
    ?.run()

const deliver = async () => {
  const endpoints = createEndpointStore(sql, sealing)
  const deliveries = {
    email: createMailDelivery(config, log),
    webhook: createEndpointDelivery('webhook', endpoints, localRules(receiver)),
    discord: createEndpointDelivery('discord', endpoints, localRules(receiver)),
  }
  for (const job of outboxJobs({ sql, log, sealing, deliveries, keepsMails: false })) await job.run()
}

let id: string
let seq: number

/** The relay reports that this happened just now. */
async function report(...happened: readonly StreamEventKind[]): Promise<void> {
  const events = happened.map((kind) => ({ seq: ++seq, kind, age_ms: 0, bitrate_kbps: 480 }))
  const body = { session_id: id, instance_id: 'i-1', events, stats: { bitrate_kbps: 480, started_at_ms: 1 } }
  const headers = { 'X-Relay-Auth': config.relayAuthSecrets[0] ?? '' }
  expect((await api.post('/relay/health', body, { headers })).status).toBe(200)
}

/** All that is stored becomes older. */
const pass = async (seconds: number) => {
  await sql`update relay_sessions set created_at = created_at - make_interval(secs => ${seconds})`
  await sql`update stream_events set at = at - make_interval(secs => ${seconds})`
  await sql`update stream_notices set due_at = due_at - make_interval(secs => ${seconds}),
    lost_at = lost_at - make_interval(secs => ${seconds})`
  await sql`update outbox_messages set created_at = created_at - make_interval(secs => ${seconds})`
}

const listKinds = async () =>
  (
    await sql<{ kind: string; channel: string }[]>`
      select kind, channel from outbox_messages order by created_at, channel`
  ).map(({ kind, channel }) => `${kind} by ${channel}`)
const countScheduled = async () => (await sql`select from stream_notices`).length

beforeEach(async () => {
  await sql`delete from outbox_messages`
  await sql`delete from notification_settings`
  await sql`delete from notification_endpoints`
  await sql`delete from relay_sessions`
  await sql`update users set email_verified_at = now(), stream_delay_seconds = 30`
  receiver.requests.length = receiver.replies.length = 0
  id = await insertActiveSession()
  seq = 0
  await report('stream_started')
})

describe('a stream', () => {
  beforeEach(() => enable('email'))

  test('that is lost for the delay is mailed once, and its return, however often and wherever the job runs', async () => {
    await report('stream_lost')
    await round()
    await pass(29)
    await round()
    expect(await listKinds()).toEqual([])
    await pass(1)
    await Promise.all([round(), round(), round()])
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email'])
    await report('stream_recovered')
    await Promise.all([round(), round(), round()])
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email', 'stream_recovered by email'])
    expect(await countScheduled()).toBe(0)
  })

  test('that is back within the delay causes no message', async () => {
    await report('stream_lost')
    await pass(20)
    await report('stream_recovered')
    await pass(20)
    await round()
    expect([await listKinds(), await countScheduled()]).toEqual([[], 0])
  })

  test('that is weak for the delay is mailed, and one that is weak for less is not', async () => {
    await report('stream_weak')
    await pass(29)
    await report('stream_recovered')
    await round()
    await pass(1)
    await report('stream_weak')
    await pass(30)
    await round()
    expect(await listKinds()).toEqual(['stream_weak by email'])
    await report('stream_recovered')
    await round()
    expect([await listKinds(), await countScheduled()]).toEqual([['stream_weak by email'], 0])
  })

  test.each([
    ['its session stops', [stopGrace, stopNow], null],
    ['its user stops the relay', [stopGrace], 30],
  ] as const)('that is lost is not mailed when %s within the delay', async (_, transitions, graceSeconds) => {
    await report('stream_lost')
    await writeTransitions(sql, transitionsRequest(id, { version: 1, transitions, graceSeconds }), notify)
    await pass(30)
    await round()
    expect([await listKinds(), await countScheduled()]).toEqual([[], 0])
  })

  test('that is lost with its relay is mailed too', async () => {
    const request = transitionsRequest(id, { version: 1, transitions: [healthLost], graceSeconds: 120 })
    await writeTransitions(sql, request, notify)
    await pass(30)
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email'])
  })

  test('that ends within the delay, because its relay ends, is not mailed', async () => {
    await report('stream_lost')
    await pass(10)
    await report('stream_ended')
    await pass(30)
    await round()
    expect([await listKinds(), await countScheduled()]).toEqual([[], 0])
  })

  test('that is lost is mailed at the first look without a delay, and after another delay once that is set', async () => {
    await setStreamDelay(sql, userId, 0)
    await report('stream_lost')
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email'])
    await report('stream_recovered')
    await round()
    await setStreamDelay(sql, userId, 600)
    await report('stream_lost')
    await pass(40)
    await round()
    expect(await listKinds()).toHaveLength(2)
    await setStreamDelay(sql, userId, 40)
    await round()
    expect(await listKinds()).toHaveLength(3)
  })

  test('is mailed by the next run when a process is killed before the commit', async () => {
    await report('stream_lost')
    await pass(30)
    const failing = async (...[tx, user, notification]: Parameters<typeof notify>) => {
      await notify(tx, user, notification)
      throw new Error('the process is killed')
    }
    await expect(round(failing)).rejects.toThrow('the process is killed')
    expect(await listKinds()).toEqual([])
    await round()
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email'])
  })

  test('that returns while the loss is being written is mailed as returned by the next run', async () => {
    await report('stream_lost')
    await pass(30)
    let reporting: Promise<void> | undefined
    await round(async (tx, user, notification) => {
      // It waits for this transaction.
      reporting = report('stream_recovered')
      return notify(tx, user, notification)
    })
    await reporting
    await round()
    expect(await listKinds()).toEqual(['stream_lost by email', 'stream_recovered by email'])
  })
})

describe('the kinds', () => {
  test('cost an account nothing that has none of them on', async () => {
    await enable('email', ['relay_ended', 'usage_80'])
    for (const kind of kinds) await setNotification(sql, userId, { kind, channel: 'endpoint' }, false)
    await report('stream_lost')
    await report('stream_weak')
    expect(await countScheduled()).toBe(0)
    await pass(600)
    await round()
    expect(await listKinds()).toEqual([])
  })

  test('are sent where each is on, and a return only after a loss that was sent', async () => {
    await enable('email', ['stream_recovered'])
    await report('stream_lost')
    await pass(30)
    await round()
    await report('stream_recovered')
    await round()
    expect(await listKinds()).toEqual([])
    await replaceEndpoint(sql, sealing, userId, { type: 'discord', url: receiver.url, secret: null })
    await enable('endpoint', ['stream_lost'])
    await report('stream_lost')
    await pass(30)
    await round()
    await report('stream_recovered')
    await round()
    expect(await listKinds()).toEqual(['stream_lost by discord', 'stream_recovered by email'])
  })

  test('are each sent six times in an hour, on all channels of an account', async () => {
    await enable('email')
    await enable('endpoint', ['stream_lost'])
    await replaceEndpoint(sql, sealing, userId, { type: 'webhook', url: receiver.url, secret })
    await setStreamDelay(sql, userId, 0)
    const countOf = async (kind: string) => (await listKinds()).filter((each) => each === kind).length
    for (let times = 0; times < streamNotificationsPerHourMax + 2; times += 1) {
      await report('stream_lost')
      await round()
      await report('stream_recovered')
      await round()
    }
    const counts = [await countOf('stream_lost by email'), await countOf('stream_lost by webhook')]
    expect([...counts, await countOf('stream_recovered by email')]).toEqual([6, 6, 6])
    await report('stream_weak')
    await round()
    expect(await countOf('stream_weak by email')).toBe(1)
    await pass(3601)
    await report('stream_lost')
    await round()
    expect(await countOf('stream_lost by email')).toBe(7)
  })

  test('count among all notifications of an hour', async () => {
    await enable('email')
    await sql`
      insert into outbox_messages (user_id, channel, kind, content)
      select ${userId}, 'email', 'usage_80', null from generate_series(1, ${notificationsPerHourMax})`
    await report('stream_lost')
    await pass(30)
    await round()
    expect([(await listKinds()).includes('stream_lost by email'), await countScheduled()]).toEqual([false, 0])
  })
})

describe('a message', () => {
  const link = /https:\/\/relay\.example\/history\/[-\da-f]+\?at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/

  test('arrives by mail with a link to the moment', async () => {
    await enable('email')
    await report('stream_lost')
    await pass(30)
    await round()
    const count = smtp.received.length
    await deliver()
    const [event] = await sql<{ at: Date }[]>`select at from stream_events where kind = 'stream_lost'`
    const [mail] = smtp.received.slice(count)
    expect(link.exec(mail?.text ?? '')?.[0]).toBe(`https://relay.example/history/${id}?at=${event?.at.toISOString()}`)
    expect(mail?.text).toContain('No video has come in since')
  })

  test('arrives at a webhook with the facts of each kind', async () => {
    await enable('endpoint')
    await replaceEndpoint(sql, sealing, userId, { type: 'webhook', url: receiver.url, secret })
    const [session] = await sql`select connection_id, region from relay_sessions where id = ${id}`
    const common = { session_id: id, connection_id: session?.connectionId, region: session?.region }
    await report('stream_lost')
    await pass(31)
    await round()
    await deliver()
    await report('stream_recovered')
    await round()
    await deliver()
    await report('stream_weak')
    await pass(30)
    await round()
    await deliver()
    const [lost, recovered, weak] = receiver.requests.map(({ body }) => JSON.parse(body))
    for (const body of [lost, recovered, weak]) {
      expect(body.data).toMatchObject({ ...common, at: body.timestamp })
      expect(body.url).toBe(`https://relay.example/history/${id}?at=${body.timestamp}`)
    }
    expect([lost.type, recovered.type, weak.type]).toEqual(['stream_lost', 'stream_recovered', 'stream_weak'])
    expect([recovered.data.bitrate_kbps, weak.data.bitrate_kbps]).toEqual([480, 480])
    expect(recovered.data.away_seconds).toBeGreaterThanOrEqual(31)
    const away = Date.parse(recovered.data.at) - Date.parse(recovered.data.lost_at)
    expect(Math.abs(away / 1000 - recovered.data.away_seconds)).toBeLessThanOrEqual(0.051)
  })

  test('arrives at a Discord channel', async () => {
    await enable('endpoint')
    const url = `http://127.0.0.1:${receiver.port}/api/webhooks/1/token`
    await replaceEndpoint(sql, sealing, userId, { type: 'discord', url, secret: null })
    await report('stream_lost')
    await pass(30)
    await round()
    await deliver()
    const [embed] = JSON.parse(receiver.requests[0]?.body ?? '{}').embeds
    expect(embed.title).toContain('lost')
    expect(embed.url).toMatch(link)
  })
})
