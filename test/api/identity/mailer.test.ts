/** The mails of sign-ups and resets: in the outbox with an SMTP server, in the log without one. */
import { expect, test } from 'vitest'
import { outboxJobs } from '../../../activities/notifications/outbox-jobs.ts'
import { createMailDelivery } from '../../../providers/mail/delivery.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { mailsTo } from '../../support/mails.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'

const smtp = await startSmtpServer()
const api = await startApi({ SVC_SMTP_URL: smtp.url, SVC_BRAND_NAME: 'Brandy', SVC_SITE_URL: 'https://brandy.example' })

/** What the worker does. */
async function deliver({ services: { config, sql, log, sealing } }: TestApi): Promise<void> {
  const deliveries = { email: createMailDelivery(config, log) }
  for (const job of outboxJobs({ sql, log, sealing, deliveries, keepsMails: false })) await job.run()
}

test('with an SMTP server a reset link is sent and works, and is in no log', async () => {
  const user = await api.given.user()
  await api.post('/auth/password/forgot', { email: user.email })
  await deliver(api)
  const mail = smtp.received.find(({ recipients }) => recipients.includes(user.email))
  expect(mail?.headers).toContain('From: Brandy <no-reply@brandy.example>')
  const [, token] = /https:\/\/brandy\.example\/reset-password\?token=([\w-]+)/.exec(mail?.text ?? '') ?? []
  expect(token).toHaveLength(43)
  expect(api.logged.join('')).not.toContain(token)
  expect((await api.post('/auth/password/reset', { token, password: 'another good password' })).status).toBe(204)
})

test('a link whose transaction fails is not mailed', async () => {
  const { userId, email } = await api.given.user()
  const { mailer, sql } = api.services
  const link = 'https://brandy.example/forgot-password'
  const failed = sql.begin(async (tx) => {
    await mailer.send(tx, userId, { to: email, subject: 'password_changed', link })
    throw new Error('failed')
  })
  await expect(failed).rejects.toThrow('failed')
  expect(await sql`select from outbox_messages where user_id = ${userId}`).toHaveLength(0)
})

test('mails of a deleted account are not sent', async () => {
  const user = await api.given.user()
  await api.post('/auth/password/forgot', { email: user.email })
  await api.sql`delete from users where id = ${user.userId}`
  await deliver(api)
  expect(smtp.received.filter(({ recipients }) => recipients.includes(user.email))).toEqual([])
})

test('without an SMTP server links are written to the log, and nothing is enqueued', async () => {
  const plain = await startApi()
  const user = await plain.given.user()
  await plain.post('/auth/password/forgot', { email: user.email })
  expect(mailsTo(plain, user.email)).toMatchObject([{ subject: 'reset_password' }])
  expect(await plain.sql`select from outbox_messages`).toHaveLength(0)
})
