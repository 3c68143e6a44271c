/** The variables of mail and of the mailbox. */
import { expect, test } from 'vitest'
import { readConfig } from '../../../platform/config/config.ts'
import { ConfigError } from '../../../platform/config/environment.ts'
import { readSiteConfig } from '../../../platform/config/site.ts'
import { testEnvironment } from '../../support/environment.ts'

const mailOf = (variables: Record<string, string>) => readConfig(testEnvironment(variables)).mail
function problemsOf(variables: Record<string, string>): readonly string[] {
  try {
    readConfig(testEnvironment(variables))
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

test('no mail is sent and no mailbox exists by default', () => {
  expect(mailOf({})).toEqual({
    smtp: undefined,
    from: { name: 'Backhaul', address: 'no-reply@localhost' },
    mailbox: false,
  })
  expect(readSiteConfig({}).mailbox).toBe(false)
})

test.each([
  ['smtps://user:p%40ss@mail.example.com', { port: 465, tls: 'implicit', auth: { user: 'user', pass: 'p@ss' } }],
  ['smtp://user%40example.com:pw@mail.example.com', { port: 587, tls: 'starttls', auth: { user: 'user@example.com' } }],
  ['smtp://mail.example.com:25?tls=off', { host: 'mail.example.com', port: 25, tls: 'off', auth: undefined }],
  ['smtp://127.0.0.1:1025', { host: '127.0.0.1', port: 1025, tls: 'local' }],
  ['smtp://localhost', { tls: 'local' }],
  ['smtp://[::1]:25/', { host: '::1', tls: 'local' }],
  ['smtps://localhost', { tls: 'implicit' }],
  ['smtp://127.0.0.1.example.com', { tls: 'starttls' }],
])('%s selects the server and its TLS', (url, expected) => {
  expect(mailOf({ SVC_SMTP_URL: url }).smtp).toMatchObject(expected)
})

test.each([
  'http://mail.example.com',
  'mail.example.com:25',
  'smtp://',
  'smtp://hunter2@mail.example.com',
  'smtp://user:100%hunter2@mail.example.com',
  'smtp://mail.example.com/hunter2',
  'smtp://mail.example.com?tls=hunter2',
  'smtps://user:hunter2@mail.example.com?tls=off',
])('%s is refused, without a part of it in the message', (url) => {
  const problems = problemsOf({ SVC_SMTP_URL: url })
  expect(problems).toEqual([expect.stringMatching(/^SVC_SMTP_URL /)])
  expect(problems.join()).not.toMatch(/hunter2|mail\.example/)
})

test.each([
  ['help@example.com', { name: '', address: 'help@example.com' }],
  ['Relay Service <help@example.com>', { name: 'Relay Service', address: 'help@example.com' }],
  ['"Relay, Inc." <no-reply@localhost>', { name: 'Relay, Inc.', address: 'no-reply@localhost' }],
])('the sender %s is accepted', (text, from) => {
  expect(mailOf({ SVC_MAIL_FROM: text }).from).toEqual(from)
})

test.each([
  'nobody',
  'A <a@example.com> <b@example.com>',
  'A <a@example.com\r\nBcc: b@example.com>',
  'A\r\nB: c <a@example.com>',
])('the sender %j is refused', (text) => {
  expect(problemsOf({ SVC_MAIL_FROM: text })).toEqual([expect.stringMatching(/^SVC_MAIL_FROM /)])
})

test('the default sender has the name of the brand and the host of the site', () => {
  const variables = { SVC_BRAND_NAME: 'Brandy', SVC_SITE_URL: 'https://site.example.com' }
  expect(mailOf(variables).from).toEqual({ name: 'Brandy', address: 'no-reply@site.example.com' })
})

test('a mailbox that everyone can read is refused beside an SMTP server, and on a published site in production', () => {
  const both = problemsOf({ SVC_MAILBOX: 'true', SVC_SMTP_URL: 'smtp://localhost' })
  expect(both).toEqual([expect.stringMatching(/SVC_MAILBOX.*SVC_SMTP_URL/)])
  const production = { SVC_MAILBOX: 'true', NODE_ENV: 'production', SVC_BILLING_PROVIDER: 'sandbox' }
  expect(problemsOf({ ...production, SVC_SITE_URL: 'https://site.example.com' })).toEqual([
    expect.stringMatching(/^SVC_MAILBOX .*production/),
  ])
  expect(problemsOf(production)).toEqual([])
})
