/** The doctor's checks of mail, regions and billing. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { runChecks } from '../../../cli/doctor/check.ts'
import { providerChecks } from '../../../cli/doctor/providers.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { readWorkerConfig } from '../../../platform/config/config.ts'
import { createDatabase } from '../../support/api.ts'
import { testEnvironment } from '../../support/environment.ts'
import { startHetznerServer } from '../../support/hetzner-server.ts'
import { startSmtpServer } from '../../support/smtp-server.ts'

/** The results by the name of the check. */
async function examine(variables: Readonly<Record<string, string>>) {
  const database = await createDatabase()
  const sql = connectPostgres(database.url, 1)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  const config = readWorkerConfig(testEnvironment(variables))
  const results = await runChecks(providerChecks(config, { sql, obstacle: Promise.resolve(undefined) }))
  return Object.fromEntries(results.map((result) => [result.name, result] as const))
}

const signIn = await startSmtpServer({
  authOptional: false,
  allowInsecureAuth: true,
  onAuth: ({ username, password }, _, done) =>
    password === 'right' ? done(null, { user: username }) : done(new Error('wrong password')),
})
const mailUrl = (password: string) => `smtp://svc:${password}@127.0.0.1:${signIn.port}?tls=off`

test('the mail server is asked to accept the sign-in, and gets no mail', async () => {
  expect((await examine({ SVC_SMTP_URL: mailUrl('right') })).smtp).toMatchObject({
    status: 'ok',
    detail: `127.0.0.1:${signIn.port} accepts the sign-in`,
  })
  const { smtp } = await examine({ SVC_SMTP_URL: mailUrl('swordfish') })
  expect(smtp).toMatchObject({ status: 'fail', fix: expect.stringContaining('SVC_SMTP_URL') })
  expect(smtp?.detail).toContain('AUTH')
  expect(JSON.stringify(smtp)).not.toContain('swordfish')
  expect(signIn.received).toEqual([])
})

test('a mail server that does not exist has failed, and none at all is a warning', async () => {
  expect((await examine({ SVC_SMTP_URL: 'smtp://127.0.0.1:1' })).smtp).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('ECONNREFUSED'),
  })
  expect((await examine({})).smtp).toMatchObject({ status: 'warn', fix: expect.stringContaining('SVC_SMTP_URL') })
})

test('each region is checked with the credentials of its provider', async () => {
  const cloud = await startHetznerServer()
  onTestFinished(() => cloud.close())
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const variables = {
    SVC_API_URL: 'https://api.example.com',
    SVC_HETZNER_API_URL: cloud.apiUrl,
    SVC_FLEET_NAME: 'production',
    SVC_REGIONS: JSON.stringify([
      { region: 'home', display_name: 'Home', provider: 'local' },
      { region: 'eu', display_name: 'Europe', provider: 'hetzner', hetzner },
    ]),
  }
  const right = await examine({ ...variables, SVC_HETZNER_TOKEN: cloud.token })
  expect([right['region:home']?.status, right['region:eu']?.status]).toEqual(['ok', 'ok'])
  const wrong = await examine({ ...variables, SVC_HETZNER_TOKEN: 'swordfish' })
  expect([wrong['region:home']?.status, wrong['region:eu']?.status]).toEqual(['ok', 'fail'])
  expect(wrong['region:eu']?.fix).toContain('SVC_REGIONS')
  expect(JSON.stringify(wrong)).not.toContain('swordfish')
})

test('a region of this machine has failed when its relays cannot bind their address', async () => {
  const region = { region: 'home', display_name: 'Home', provider: 'local' }
  const hostOf = async (host: string) =>
    (await examine({ SVC_REGIONS: JSON.stringify([{ ...region, host }]) }))['region:home']
  expect((await hostOf('127.0.0.1'))?.status).toBe('ok')
  expect(await hostOf('203.0.113.7')).toMatchObject({
    status: 'fail',
    detail: expect.stringContaining('host 203.0.113.7 is no address of this machine'),
  })
})

test('a cloud region without the name of a fleet is a warning, and one with instances of others has failed', async () => {
  const cloud = await startHetznerServer()
  onTestFinished(() => cloud.close())
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const variables = {
    SVC_API_URL: 'https://api.example.com',
    SVC_HETZNER_API_URL: cloud.apiUrl,
    SVC_HETZNER_TOKEN: cloud.token,
    SVC_REGIONS: JSON.stringify([{ region: 'eu', display_name: 'Europe', provider: 'hetzner', hetzner }]),
  }
  expect((await examine(variables))['region:eu']).toMatchObject({
    status: 'warn',
    fix: expect.stringContaining('svc fleet adopt --name NAME'),
  })
  cloud.project.addForeign('hetzner-theirs', { 'svc-instance': 'hetzner-theirs', 'svc-region': 'eu' })
  const { 'region:eu': region } = await examine({ ...variables, SVC_FLEET_NAME: 'production' })
  expect(region).toMatchObject({ status: 'fail', detail: expect.stringContaining('hetzner-theirs') })
})

/** A double of Stripe with one key and one price. */
async function givenStripe(): Promise<string> {
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = createServer((request, response) => {
      const isKnown = request.headers.authorization === 'Bearer sk_test_right'
      const isFound = isKnown && request.method === 'GET' && request.url === '/v1/prices/price_plan'
      response.writeHead(isFound ? 200 : isKnown ? 404 : 401, { 'content-type': 'application/json' })
      const code = isKnown ? 'resource_missing' : 'api_key_invalid'
      response.end(
        JSON.stringify(
          isFound ? { id: 'price_plan', object: 'price' } : { error: { type: 'invalid_request_error', code } },
        ),
      )
    }).listen(0, '127.0.0.1', () => resolve(listening))
  })
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('the billing provider is asked for the prices that the configuration names', async () => {
  const stripe = {
    SVC_BILLING_PROVIDER: 'stripe',
    SVC_STRIPE_API_URL: await givenStripe(),
    SVC_STRIPE_PLAN_PRICE_ID: 'price_plan',
    SVC_STRIPE_ADDON_PRICE_ID: 'price_plan',
    SVC_STRIPE_API_KEY: 'sk_test_right',
  }
  expect((await examine(stripe)).billing).toMatchObject({ status: 'ok', detail: 'stripe accepts the credentials' })
  const { billing: unknown } = await examine({ ...stripe, SVC_STRIPE_ADDON_PRICE_ID: 'price_none' })
  expect(unknown).toMatchObject({ status: 'fail', detail: 'stripe answered 404 (resource_missing)' })
  const { billing: refused } = await examine({ ...stripe, SVC_STRIPE_API_KEY: 'sk_test_swordfish' })
  expect(refused).toMatchObject({
    status: 'fail',
    detail: 'stripe answered 401 (api_key_invalid)',
    fix: expect.stringContaining('SVC_STRIPE_API_KEY'),
  })
  expect(JSON.stringify(refused)).not.toContain('swordfish')
})
