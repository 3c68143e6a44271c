/** The mailbox of a local start, which shows every mail. */
import { expect, test } from 'vitest'
import { outboxJobs } from '../../../../activities/notifications/outbox-jobs.ts'
import { createMailDelivery } from '../../../../providers/mail/delivery.ts'
import { startApi, statusAndCode } from '../../../support/api.ts'
import { mailsTo } from '../../../support/mails.ts'

interface Mailbox {
  readonly mails: readonly { to: string; subject: string; text: string; link: string; created_at: string }[]
}

const api = await startApi({ SVC_MAILBOX: 'true' })

/** What the worker of a service with a mailbox does. */
async function deliver(): Promise<void> {
  const { config, sql, log, sealing } = api.services
  const deliveries = { email: createMailDelivery(config, log) }
  for (const job of outboxJobs({ sql, log, sealing, deliveries, keepsMails: true })) await job.run()
}

test('the mailbox does not exist unless it is enabled', async () => {
  const plain = await startApi()
  expect(statusAndCode(await plain.get('/mailbox'))).toEqual([404, 'not_found'])
})

test('the mailbox lists mails newest first, before and after the worker has taken them', async () => {
  const [first, second] = [await api.given.user(), await api.given.user()]
  for (const { email } of [first, second]) await api.post('/auth/password/forgot', { email })
  const before = await api.get<Mailbox>('/mailbox')
  expect(before.headers.get('cache-control')).toBe('no-store')
  expect(before.body.mails.map(({ to }) => to)).toEqual([second.email, first.email])
  await deliver()
  expect((await api.get<Mailbox>('/mailbox')).body).toEqual(before.body)
  expect(await api.sql`select from outbox_messages where sent_at is null`).toHaveLength(0)
})

test('the link of a mail in the mailbox works, and is in the log too', async () => {
  const user = await api.given.user()
  await api.post('/auth/password/forgot', { email: user.email })
  const [mail] = (await api.get<Mailbox>('/mailbox')).body.mails
  expect(mail?.text).toContain(mail?.link)
  expect(mailsTo(api, user.email)).toMatchObject([{ link: mail?.link }])
  const token = new URL(mail?.link ?? '').searchParams.get('token')
  expect((await api.post('/auth/password/reset', { token, password: 'another good password' })).status).toBe(204)
})

test('the mailbox lists 100 mails at most, and the database contains none in plain text', async () => {
  const { email, userId } = await api.given.user()
  const { mailer, sql } = api.services
  for (let i = 0; i < 101; i++)
    await mailer.send(sql, userId, { to: email, subject: 'password_changed', link: `https://site.example/${i}` })
  const { mails } = (await api.get<Mailbox>('/mailbox')).body
  expect([mails.length, mails[0]?.link]).toEqual([100, 'https://site.example/100'])
  const rows = await sql`select encode(content, 'escape') as content from outbox_messages where user_id = ${userId}`
  expect(JSON.stringify(rows)).not.toContain('site.example')
})
