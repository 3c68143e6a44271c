/** The job that sends mails from the outbox: retries, lost workers, and no link in plain text. */
import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { type OutboxJobDeps, outboxJobs } from '../../../activities/notifications/outbox-jobs.ts'
import { secretJobs } from '../../../activities/worker/secret-jobs.ts'
import { enqueueMessage } from '../../../db/notifications/outbox.ts'
import type { Deliver } from '../../../domain/notifications/outbox.ts'
import { createLog } from '../../../platform/log.ts'
import { createSealing, type Sealing } from '../../../platform/sealing.ts'
import { createMailDelivery } from '../../../providers/mail/delivery.ts'
import type { Mail } from '../../../providers/mail/mail.ts'
import { startApi } from '../../support/api.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'

const smtp = await startSmtpServer()
const api = await startApi({ SVC_SMTP_URL: smtp.url })
const { config, sealing } = api.services
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })
const deps: OutboxJobDeps = {
  sql: api.sql,
  log,
  sealing,
  deliveries: { email: createMailDelivery(config, log) },
  keepsMails: false,
}

/** Runs the jobs once, as a newly started worker does. */
async function round(overrides: Partial<OutboxJobDeps> = {}, signal?: AbortSignal): Promise<void> {
  for (const job of outboxJobs({ ...deps, ...overrides })) await job.run(signal)
}

const link = 'https://backhaul.example/verify-email?token=c2VjcmV0LW9mLXRoZS1saW5r'
const mailTo = (to: string): Mail => ({ to, subject: 'verify_email', link, expiresAt: '2126-01-01T00:00:00Z' })
const enqueue = (to = 'jane@example.com', by: Sealing = sealing) =>
  enqueueMessage(api.sql, by, { userId: null, channel: 'email', kind: 'verify_email', content: mailTo(to) })
const rowOf = async (id: string) =>
  (
    await api.sql`
      select attempts, sent_at is not null as "isSent", failed_at is not null as "hasFailed", last_error as "lastError",
        content is not null as "hasContent", extract(epoch from next_attempt_at - now())::float8 as "nextSeconds"
      from outbox_messages where id = ${id}`
  )[0]
const pass = (seconds: number) => api.sql`
  update outbox_messages set next_attempt_at = next_attempt_at - make_interval(secs => ${seconds}),
    created_at = created_at - make_interval(secs => ${seconds})`

beforeEach(async () => {
  smtp.accept()
  smtp.beforeAcceptance = undefined
  await api.sql`delete from outbox_messages`
})

test('a mail is sent once, and its text is deleted', async () => {
  const id = await enqueue()
  const count = smtp.received.length
  await round()
  await round()
  expect(smtp.received.slice(count)).toMatchObject([{ recipients: ['jane@example.com'] }])
  expect(smtp.received.at(-1)?.text).toContain(link)
  expect(await rowOf(id)).toMatchObject({ attempts: 1, isSent: true, hasContent: false, nextSeconds: null })
})

test('the database contains no link and no recipient in plain text', async () => {
  await enqueue('secret-recipient@example.com')
  const rows = await api.sql`select o::text as line, encode(content, 'escape') as content from outbox_messages o`
  expect(JSON.stringify(rows)).not.toMatch(/c2VjcmV0|secret-recipient|backhaul\.example/)
  expect(rows).toHaveLength(1)
})

test('a mail that is refused for now is retried with growing delays, and a later acceptance ends that', async () => {
  const id = await enqueue()
  smtp.refuse('recipient', 451)
  for (const [attempts, seconds] of [
    [1, 5],
    [2, 10],
    [3, 20],
  ] as const) {
    await round()
    await round()
    const row = await rowOf(id)
    expect(row).toMatchObject({ attempts, isSent: false, lastError: expect.stringContaining('451') })
    expect(row?.nextSeconds).toBeGreaterThan(seconds - 5)
    expect(row?.nextSeconds).toBeLessThanOrEqual(seconds)
    await pass(seconds)
  }
  smtp.accept()
  await round()
  expect(await rowOf(id)).toMatchObject({ attempts: 4, isSent: true, lastError: null })
})

test('a mail that is refused for good is given up at once, and its text is deleted', async () => {
  const id = await enqueue()
  smtp.refuse('recipient', 550)
  await round()
  expect(await rowOf(id)).toMatchObject({ attempts: 1, hasFailed: true, hasContent: false, nextSeconds: null })
  expect(logged.at(-1)).toContain('given up')
})

test('mails survive an outage of the server', async () => {
  const ids = [await enqueue('a@example.com'), await enqueue('b@example.com')]
  await smtp.stop()
  await round()
  for (const id of ids) expect(await rowOf(id)).toMatchObject({ isSent: false, hasContent: true })
  await smtp.start()
  await pass(5)
  const count = smtp.received.length
  await round()
  const recipients = smtp.received.slice(count).flatMap((mail) => mail.recipients)
  expect(recipients.toSorted()).toEqual(['a@example.com', 'b@example.com'])
})

test('a mail that could not be sent for a day is given up, with an error in the log', async () => {
  const id = await enqueue()
  smtp.refuse('message', 421)
  await pass(86_390)
  await round()
  expect(await rowOf(id)).toMatchObject({ hasFailed: false })
  await pass(3600)
  await round()
  expect(await rowOf(id)).toMatchObject({ hasFailed: true, hasContent: false })
  expect(JSON.parse(logged.at(-1) ?? '{}')).toMatchObject({ level: 'error', message_id: id })
})

test('ten workers send each of many mails once', async () => {
  for (let i = 0; i < 40; i++) await enqueue(`user-${i}@example.com`)
  const count = smtp.received.length
  await Promise.all(Array.from({ length: 10 }, () => round()))
  const recipients = smtp.received.slice(count).flatMap((mail) => mail.recipients)
  expect(recipients).toHaveLength(40)
  expect(new Set(recipients).size).toBe(40)
})

test('a mail whose worker died is sent by another one after its lease', async () => {
  const id = await enqueue()
  await api.sql`
    update outbox_messages set attempts = 1, next_attempt_at = now() + interval '60 seconds' where id = ${id}`
  await round()
  expect(await rowOf(id)).toMatchObject({ isSent: false })
  await pass(60)
  await round()
  expect(await rowOf(id)).toMatchObject({ attempts: 2, isSent: true })
})

test('a message that no key decrypts does not stop the others', async () => {
  const broken = await enqueue(
    'a@example.com',
    createSealing([{ id: 'gone', key: randomBytes(32).toString('base64') }]),
  )
  const well = await enqueue('b@example.com')
  await round()
  expect([await rowOf(broken), await rowOf(well)]).toMatchObject([{ isSent: false }, { isSent: true }])
})

test('queued messages are sealed again during a rotation of the key', async () => {
  const id = await enqueue()
  const added = { id: 'new', key: randomBytes(32).toString('base64') }
  const [job] = secretJobs({ sql: api.sql, log, sealing: createSealing([added, ...config.oauthEncryptionKeys]) })
  await job?.run()
  await round({ sealing: createSealing([added]) })
  expect(await rowOf(id)).toMatchObject({ isSent: true })
})

test('a stopping worker begins no attempt', async () => {
  const id = await enqueue()
  await round({}, AbortSignal.abort())
  expect(await rowOf(id)).toMatchObject({ attempts: 0 })
})

test('a channel that hangs delays no mail, and channels without a delivery wait', async () => {
  let end = () => {}
  const hanging: Deliver = () =>
    new Promise((_resolve, reject) => {
      end = () => reject(new Error('no answer'))
    })
  const add = (channel: 'webhook' | 'discord') =>
    enqueueMessage(api.sql, sealing, { userId: null, channel, kind: 'test', content: {} })
  const [slow, other, mail] = [await add('webhook'), await add('discord'), await enqueue()]
  const jobs = outboxJobs({ ...deps, deliveries: { ...deps.deliveries, webhook: hanging } })
  const runs = jobs.map((job) => job.run())
  await expect.poll(async () => (await rowOf(mail))?.isSent).toBe(true)
  expect(await rowOf(slow)).toMatchObject({ attempts: 1, isSent: false })
  expect(await rowOf(other)).toMatchObject({ attempts: 0 })
  end()
  await Promise.all(runs)
  expect(await rowOf(slow)).toMatchObject({ lastError: 'no answer', hasFailed: false })
})

test('an attempt that takes too long is ended, and retried', async () => {
  const hanging: Deliver = (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('no answer'))))
  const id = await enqueue()
  await round({ deliveries: { email: hanging }, attemptMillisMax: 50 })
  expect(await rowOf(id)).toMatchObject({ attempts: 1, isSent: false, lastError: 'no answer', hasFailed: false })
})

test('the log contains no link', () => {
  expect(logged.length).toBeGreaterThan(5)
  expect(logged.join('')).not.toContain('c2VjcmV0')
})
