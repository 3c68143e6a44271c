/** The delivery of mails to an SMTP server: TLS, refusals, limits of time. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { SMTPServerOptions } from 'smtp-server'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { UndeliverableError } from '../../../domain/notifications/outbox.ts'
import { parseSmtpUrl, type SmtpConfig } from '../../../platform/config/mail-values.ts'
import type { Mail, NotificationMail } from '../../../providers/mail/mail.ts'
import { createSmtpDelivery, type SmtpOptions } from '../../../providers/mail/smtp.ts'
import { localhostCertificate } from '../../support/localhost-certificate.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'

const from = { name: 'Backhaul', address: 'no-reply@backhaul.example' }
const link = 'https://backhaul.example/reset-password?token=VGhlLXNlY3JldC1vZi10aGUtbGluaw'
const expiresAt = new Date(Date.now() + 60_000).toISOString()
const reset: Mail = { to: 'jane@example.com', subject: 'reset_password', link, expiresAt }

const server = await startSmtpServer()
const configOf = (url: string): SmtpConfig => {
  const parsed = parseSmtpUrl(url)
  if (typeof parsed === 'string') throw new Error(`the URL ${parsed}`)
  return parsed
}
const send = (mail: Mail, options: Partial<SmtpOptions> = {}, id = randomUUID(), signal = AbortSignal.timeout(8000)) =>
  createSmtpDelivery({ smtp: configOf(server.url), from, brandName: 'Backhaul', ...options })(
    { id, kind: mail.subject, content: mail },
    signal,
  )
const failureOf = (sending: Promise<void>): Promise<Error> =>
  sending.then(
    () => {
      throw new Error('the mail was sent')
    },
    (error: Error) => error,
  )

beforeEach(() => server.accept())

test('a mail arrives with its link in both parts, one recipient and the configured sender', async () => {
  await send(reset)
  const mail = server.received.at(-1)
  expect(mail).toMatchObject({ from: from.address, recipients: ['jane@example.com'], isEncrypted: false })
  expect(mail?.headers).toEqual(
    expect.arrayContaining(['From: Backhaul <no-reply@backhaul.example>', 'To: jane@example.com']),
  )
  expect(mail?.text).toContain(link)
  expect(mail?.html).toContain(`<a href="${link}">`)
})

test('all attempts of a message have the same Message-ID', async () => {
  const id = randomUUID()
  await send(reset, {}, id)
  await send(reset, {}, id)
  const ids = server.received.slice(-2).map(({ headers }) => headers.find((line) => line.startsWith('Message-ID')))
  expect(ids).toEqual([`Message-ID: <${id}@backhaul.example>`, `Message-ID: <${id}@backhaul.example>`])
})

test('a mail whose link has expired is given up', async () => {
  const count = server.received.length
  const expired = { ...reset, expiresAt: new Date(Date.now() - 1000).toISOString() }
  expect(await failureOf(send(expired))).toBeInstanceOf(UndeliverableError)
  expect(server.received).toHaveLength(count)
})

const notification: NotificationMail = {
  to: 'jane@example.com',
  subject: 'notification',
  title: 'Relay ended',
  paragraphs: ['The relay ended.'],
  link: 'https://backhaul.example/relays',
  linkText: 'Open your relays',
  unsubscribeLink: 'https://backhaul.example/unsubscribe?token=a b',
}

test('a notification can be turned off by one click, and a mail about the account cannot', async () => {
  await send(notification)
  expect(server.received.at(-1)?.headers).toEqual(
    expect.arrayContaining([
      'List-Unsubscribe: <https://backhaul.example/unsubscribe?token=a%20b>',
      'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
    ]),
  )
  await send(reset)
  expect(server.received.at(-1)?.headers.join()).not.toContain('List-Unsubscribe')
})

test('line breaks in texts and names add no header', async () => {
  const title = 'Hello\r\nBcc: mallory@example.com\r\n\r\nText'
  await send(
    { ...notification, title, unsubscribeLink: 'https://backhaul.example/u\r\nX-Injected: 1' },
    { from: { name: 'Back\r\nX-Injected: 2', address: from.address } },
  )
  const { headers = [], recipients } = server.received.at(-1) ?? {}
  expect(recipients).toEqual(['jane@example.com'])
  expect(headers.filter((line) => /^(bcc|x-injected|text)/i.test(line))).toEqual([])
})

test.each([
  'jane@example.com,mallory@example.com',
  'jane@example.com\r\nRCPT TO:<mallory@example.com>',
  '<mallory@example.com>@example.com',
  'mallory@example.com;jane@example.com',
  '"jane"@example.com',
])('an address that could be read as several is given up: %j', async (to) => {
  const count = server.received.length
  expect(await failureOf(send({ ...reset, to }))).toBeInstanceOf(UndeliverableError)
  expect(server.received).toHaveLength(count)
})

test('an address and texts beyond ASCII arrive as they are', async () => {
  await send({ ...notification, to: 'jäne@exämple.com', title: 'Relay „Zürich“ ended 🎬', paragraphs: ['日本 — ü'] })
  const mail = server.received.at(-1)
  expect(mail?.recipients).toEqual(['jäne@exämple.com'])
  expect(mail?.text).toContain('日本 — ü')
  expect(mail?.html).toContain('Relay „Zürich“ ended 🎬')
})

test.each([
  ['recipient', 550, true],
  ['recipient', 450, false],
  ['message', 554, true],
  ['message', 451, false],
] as const)('a %s that is refused with %i is given up: %s', async (step, code, isGivenUp) => {
  server.refuse(step, code)
  const failure = await failureOf(send(reset))
  expect([failure instanceof UndeliverableError, failure.message.includes(String(code))]).toEqual([isGivenUp, true])
})

test('the error contains no link and no secret that the server quotes', async () => {
  server.refuse('message', 554, `rejected: ${link} with token=VGhlLXNlY3JldC1vZi10aGUtbGluaw is spam`)
  const { message } = await failureOf(send(reset))
  expect(message).toContain('is spam')
  expect(message).not.toMatch(/VGhlLX|backhaul/)
})

test('an attempt ends with its signal, and the server gets nothing afterwards', async () => {
  server.refuse('recipient', 'hang')
  const count = server.received.length
  const failure = await failureOf(send(reset, {}, randomUUID(), AbortSignal.timeout(300)))
  expect(failure.message).toBe('EABORT: Message sending aborted')
  expect(failure).not.toBeInstanceOf(UndeliverableError)
  expect(server.received).toHaveLength(count)
})

test('a server that closes the connection, or that does not exist, is tried again', async () => {
  const closing = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  onTestFinished(() => void closing.close())
  await once(closing, 'listening')
  const { port } = closing.address() as AddressInfo
  for (const url of [`smtp://127.0.0.1:${port}`, 'smtp://127.0.0.1:1'])
    expect(await failureOf(send(reset, { smtp: configOf(url) }))).not.toBeInstanceOf(UndeliverableError)
})

const signIn: SMTPServerOptions = {
  authOptional: false,
  onAuth: ({ username, password }, _, done) =>
    password === 'p@ss word' ? done(null, { user: username }) : done(new Error('wrong password')),
}
const encrypted = await startSmtpServer({ ...signIn, secure: true })
const upgrading = await startSmtpServer({ ...signIn, disabledCommands: [] })
const ca = localhostCertificate

test.each([
  ['smtps', encrypted],
  ['smtp', upgrading],
] as const)('%s:// signs in over TLS with a verified certificate', async (scheme, { port, received }) => {
  const smtp = { ...configOf(`${scheme}://svc:p%40ss%20word@localhost:${port}`) }
  // The same machine is trusted without a certificate; another one is not.
  if (scheme === 'smtp') smtp.tls = 'starttls'
  expect(await failureOf(send(reset, { smtp }))).not.toBeInstanceOf(UndeliverableError)
  expect(received).toHaveLength(0)
  await send(reset, { smtp, ca })
  expect(received).toMatchObject([{ isEncrypted: true, user: 'svc' }])
})

test('a wrong password is retried, and appears in no error', async () => {
  const failure = await failureOf(
    send(reset, { smtp: configOf(`smtps://svc:swordfish@localhost:${encrypted.port}`), ca }),
  )
  expect(failure).not.toBeInstanceOf(UndeliverableError)
  expect(failure.message).toContain('AUTH')
  expect(failure.message).not.toContain('swordfish')
})

test('a mail is not sent without TLS where TLS is required', async () => {
  const count = server.received.length
  const smtp = { ...configOf(server.url), tls: 'starttls' } as const
  expect(await failureOf(send(reset, { smtp }))).not.toBeInstanceOf(UndeliverableError)
  expect(server.received).toHaveLength(count)
  await send(reset, { smtp: { ...smtp, tls: 'off' } })
  expect(server.received).toHaveLength(count + 1)
})
