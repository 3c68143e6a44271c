/** The environment that a local start gives to each program. */
import { expect, test } from 'vitest'
import { mailboxVariable, siteEnvironment } from '../../cli/program-environment.ts'
import { readStackConfig } from '../../platform/config/stack.ts'

const variableOf = (env: Record<string, string>) => mailboxVariable(readStackConfig(env))

test.each([[{}], [{ SVC_SITE_URL: 'http://localhost:9000' }], [{ SVC_SITE_URL: 'http://127.0.0.1:9000' }]])(
  'npm start has a mailbox for a site on this machine: %j',
  (env) => {
    expect(variableOf(env)).toEqual({ SVC_MAILBOX: 'true' })
  },
)

test.each([
  [{ SVC_SITE_URL: 'https://site.example.com' }],
  [{ SVC_SMTP_URL: 'smtp://localhost' }],
  [{ SVC_SMTP_URL_FILE: '/run/secrets/smtp_url' }],
  [{ SVC_MAILBOX: 'false' }],
])('npm start enables no mailbox with %j', (env) => {
  expect(variableOf(env)).toEqual({})
})

test('the environment of the site has the variable of the mailbox, and not the one of the SMTP server', () => {
  const env = siteEnvironment(
    { SVC_MAILBOX: 'true', SVC_SMTP_URL: 'smtp://user:pw@localhost' },
    'http://localhost:8080',
  )
  expect(env).toEqual({ SVC_MAILBOX: 'true', SVC_API_URL: 'http://localhost:8080' })
})
