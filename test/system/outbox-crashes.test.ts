/** Mails while the worker is killed. */
import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startApi } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { startProgram } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'
import { type ReceivedMail, startSmtpServer } from '../support/smtp-server.ts'

const smtp = await startSmtpServer()
const shared = { SVC_SMTP_URL: smtp.url, OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64') }
const api = await startApi(shared)

const dataDir = await makeFolder()
atEnd(() => removeFolder(dataDir))

const mailsTo = (email: string) => smtp.received.filter(({ recipients }) => recipients.includes(email))
const messageIdOf = ({ headers }: ReceivedMail) => headers.find((line) => line.startsWith('Message-ID'))

test('a worker that is killed while it sends a mail loses none: the next one sends it with the same Message-ID', async () => {
  const [first, second] = [await api.given.user(), await api.given.user()]
  const worker = startProgram(
    'worker',
    testEnvironment({
      ...shared,
      DATABASE_URL: api.services.config.database.url,
      SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
      SVC_DATA_DIR: dataDir,
    }),
  )
  // The server accepts the mail, and the worker is dead before the reply.
  smtp.beforeAcceptance = () => {
    smtp.beforeAcceptance = undefined
    return worker.kill()
  }
  await api.post('/auth/password/forgot', { email: first.email })
  await eventually(
    async () => mailsTo(first.email),
    (mails) => mails.length === 1,
  )
  await api.post('/auth/password/forgot', { email: second.email })
  expect(await api.sql`select from outbox_messages where sent_at is null`).toHaveLength(2)

  worker.start()
  await eventually(
    async () => mailsTo(second.email),
    (mails) => mails.length === 1,
  )
  expect(mailsTo(first.email)).toHaveLength(1)
  await api.sql`update outbox_messages set next_attempt_at = now() where sent_at is null`
  const repeated = await eventually(
    async () => mailsTo(first.email),
    (mails) => mails.length === 2,
  )
  expect(new Set(repeated.map(messageIdOf)).size).toBe(1)
  await eventually(
    async () => api.sql`select from outbox_messages where sent_at is null`,
    (rows) => rows.length === 0,
  )
})
