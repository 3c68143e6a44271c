/** Notifications of ends that come at a known time, and the mail that announces mails that are on. */
import { beforeEach, describe, expect, test } from 'vitest'
import { notificationJobs } from '../../../activities/notifications/notification-jobs.ts'
import { createNotify } from '../../../activities/notifications/notifier.ts'
import { openMessage } from '../../../db/notifications/outbox.ts'
import { setNotification } from '../../../db/notifications/settings.ts'
import { type AccountNotification, notificationsPerHourMax } from '../../../domain/notifications/kinds.ts'
import { createSealing } from '../../../platform/sealing.ts'
import { writeStopGrace, writeStopped } from '../../support/relay-rows.ts'
import { startTransitions } from '../../support/relay-transitions.ts'

const { api, sql, userId, insertActiveSession, insertSession, ageSession } = await startTransitions()
const { sealing } = api.services
const notify = createNotify({ sealing, siteUrl: 'https://relay.example' })
const hour = 3600
const config = {
  mail: { smtp: undefined, mailbox: true },
  relay: { maxSessionSeconds: 16 * hour },
  siteUrl: 'https://relay.example',
}

const run = async (name: string, deps: Partial<Parameters<typeof notificationJobs>[0]> = {}) =>
  notificationJobs({ config, sql, sealing, notify, ...deps })
    .find((job) => job.name === name)
    ?.run()

interface SentMail {
  readonly to: string
  readonly subject: string
  readonly title?: string
  readonly paragraphs?: readonly string[]
  readonly unsubscribeLink?: string
}
const listMails = async () => {
  const rows = await sql<{ id: string; kind: string; content: Buffer }[]>`
    select id, kind, content from outbox_messages order by created_at, kind, id`
  return rows.map((row) => ({ kind: row.kind, mail: openMessage(sealing, row) as SentMail }))
}
const listKinds = async () =>
  (await sql<{ kind: string }[]>`select kind from outbox_messages order by created_at, kind`).map(({ kind }) => kind)

beforeEach(async () => {
  await sql`delete from outbox_messages`
  await sql`delete from notification_settings`
  await sql`delete from relay_sessions`
  await sql`delete from subscriptions`
  await sql`delete from users where id <> ${userId}`
  await sql`
    update users set email_verified_at = now(), plan_tier = 'paid', plan_status = 'active', plan_until = null,
      period_start = null, period_end = null, plan_ending_notified_for = null, billing_mails_announced_at = now()`
})

describe('the end of a plan', () => {
  const endIn = (hours: number) => sql`update users set plan_until = now() + make_interval(mins => ${hours * 60})`
  const round = () => run('notify_ending_plans')

  test('is mailed once within three days, however often and wherever the job runs', async () => {
    await endIn(72.1)
    await round()
    expect(await listKinds()).toEqual([])
    await endIn(71.9)
    await Promise.all([round(), round(), round()])
    await round()
    const mails = await listMails()
    expect(mails.map(({ kind }) => kind)).toEqual(['plan_ending'])
    const [row] = await sql<{ planUntil: Date }[]>`select plan_until from users`
    const end = row?.planUntil.toISOString() ?? ''
    expect(mails[0]?.mail.paragraphs?.join(' ')).toContain(`${end.slice(0, 10)} ${end.slice(11, 16)} UTC`)
  })

  test('is mailed again when it is another end', async () => {
    await endIn(10)
    await round()
    await endIn(60)
    await round()
    expect(await listKinds()).toEqual(['plan_ending', 'plan_ending'])
  })

  test('that has passed is not mailed, nor one after which a subscription goes on', async () => {
    await endIn(-1)
    await round()
    await endIn(10)
    await sql`
      insert into subscriptions (provider, subscription_id, kind, user_id, status, quantity, period_end)
      values ('sandbox', 's', 'plan', ${userId}, 'cancelled', 1, now() + interval '9 days')`
    await round()
    expect(await listKinds()).toEqual([])
    await sql`update subscriptions set period_end = now() + interval '1 day'`
    await sql`
      update users set plan_until = s.period_end, period_start = now(), period_end = s.period_end
      from subscriptions s where s.user_id = users.id`
    await round()
    expect(await listKinds()).toEqual(['plan_ending'])
  })

  test('is not mailed to an account that turned it off, nor to an address that is not verified', async () => {
    await setNotification(sql, userId, { kind: 'plan_ending', channel: 'email' }, false)
    await endIn(10)
    await round()
    await sql`delete from notification_settings`
    await sql`update users set email_verified_at = null`
    await endIn(11)
    await round()
    expect(await listKinds()).toEqual([])
  })

  test('is mailed by the next run when a process is killed before the commit', async () => {
    await endIn(10)
    const failing = async (...[tx, user, notification]: Parameters<typeof notify>) => {
      await notify(tx, user, notification)
      throw new Error('the process is killed')
    }
    await expect(run('notify_ending_plans', { notify: failing })).rejects.toThrow('the process is killed')
    expect(await listKinds()).toEqual([])
    await round()
    expect(await listKinds()).toEqual(['plan_ending'])
  })
})

describe('the age of a relay', () => {
  const round = () => run('notify_ending_relays')

  test('is mailed once, an hour before it may be stopped, with both times', async () => {
    const id = await insertActiveSession()
    await ageSession(id, 14.9 * hour)
    await round()
    expect(await listKinds()).toEqual([])
    await ageSession(id, 15 * hour)
    await Promise.all([round(), round(), round()])
    await ageSession(id, 20 * hour)
    await round()
    expect(await listKinds()).toEqual(['relay_ending_soon'])
  })

  test('is stated with the times from which on the relay ends', async () => {
    const id = await insertActiveSession()
    await ageSession(id, 15 * hour)
    const seen: AccountNotification[] = []
    await run('notify_ending_relays', { notify: async (_tx, _user, notification) => seen.push(notification) > 0 })
    const [row] = await sql<{ createdAt: Date; connectionId: string }[]>`
      select created_at, connection_id from relay_sessions where id = ${id}`
    const hoursLater = (hours: number) => new Date((row?.createdAt.getTime() ?? 0) + hours * hour * 1000).toISOString()
    expect(seen).toMatchObject([
      {
        kind: 'relay_ending_soon',
        data: {
          session_id: id,
          connection_id: row?.connectionId,
          idle_ends_at: hoursLater(16),
          ends_at: hoursLater(24),
        },
      },
    ])
  })

  test('is not mailed of a relay that has ended or is not yet active', async () => {
    await ageSession(await insertSession(), 15 * hour)
    const ended = await insertActiveSession()
    await ageSession(ended, 15 * hour)
    await writeStopGrace(sql, ended)
    await writeStopped(sql, ended)
    await round()
    expect(await listKinds()).toEqual([])
  })
})

describe('an account that is older than mails about payments', () => {
  const round = () => run('announce_billing_mails')
  const insertAccounts = (count: number, isVerified: boolean) => sql`
    insert into users (email, stream_token_sealed, stream_token_hash, email_verified_at, billing_mails_announced_at)
    select gen_random_uuid() || '@example.com', 'sealed', sha256(gen_random_uuid()::text::bytea),
      case when ${isVerified} then now() end, null
    from generate_series(1, ${count})`

  test('gets one announcement that they are on, in batches, if its address is verified', async () => {
    await insertAccounts(101, true)
    await insertAccounts(3, false)
    await round()
    expect(await listKinds()).toEqual(Array(100).fill('billing_mails_enabled'))
    await Promise.all([round(), round()])
    await round()
    const mails = await listMails()
    expect(mails).toHaveLength(101)
    expect(new Set(mails.map(({ mail }) => mail.to)).size).toBe(101)
    expect(mails[0]?.mail).toMatchObject({
      subject: 'billing_mails_enabled',
      link: 'https://relay.example/account/notifications',
    })
    await sql`update users set email_verified_at = now()`
    await round()
    expect(await listKinds()).toHaveLength(104)
  })

  test('gets the announcement from the next run when a process is killed before the commit', async () => {
    await insertAccounts(1, true)
    const broken = { ...createSealing([{ id: sealing.keyId, key: Buffer.alloc(32, 9).toString('base64') }]) }
    broken.seal = () => {
      throw new Error('the process is killed')
    }
    await expect(run('announce_billing_mails', { sealing: broken })).rejects.toThrow('the process is killed')
    await round()
    expect(await listKinds()).toEqual(['billing_mails_enabled'])
  })

  test('gets the announcement once the service sends mails', async () => {
    await insertAccounts(1, true)
    await run('announce_billing_mails', { config: { ...config, mail: { smtp: undefined, mailbox: false } } })
    expect(await listKinds()).toEqual([])
    await round()
    expect(await listKinds()).toEqual(['billing_mails_enabled'])
  })

  test('gets no announcement when it is new', async () => {
    await api.given.user()
    await sql`update users set email_verified_at = now()`
    await round()
    expect(await listKinds()).toEqual([])
  })
})

test('mails about payments are sent beyond the limit of notifications in an hour, and each has a link that turns them off', async () => {
  await sql`
    insert into outbox_messages (user_id, channel, kind, content)
    select ${userId}, 'email', 'usage_80', null from generate_series(1, ${notificationsPerHourMax})`
  await sql`update users set plan_until = now() + interval '10 hours'`
  await run('notify_ending_plans')
  const [sent] = await sql<{ id: string; content: Buffer }[]>`
    select id, content from outbox_messages where kind = 'plan_ending'`
  const mail = sent && (openMessage(sealing, sent) as SentMail)
  const token = new URL(mail?.unsubscribeLink ?? '').searchParams.get('token')
  expect((await api.post('/notifications/unsubscribe', { token })).status).toBe(200)
  await sql`update users set plan_until = now() + interval '20 hours'`
  await run('notify_ending_plans')
  expect((await listKinds()).filter((kind) => kind === 'plan_ending')).toHaveLength(1)
})
