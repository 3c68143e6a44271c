/** A provider that does not answer as it should: a clear error within 10 s, with nothing in it that is secret. */
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createBoundedFetch } from '../../../providers/oauth/bounded-fetch.ts'
import { OAuthDenied, type OAuthProviderName, OAuthProviderTrouble } from '../../../providers/oauth/provider.ts'
import type { Breakage, Endpoint, OAuthDouble } from '../../support/oauth-double.ts'
import { goAndReturn, providerAt, type Returned, startDouble } from '../../support/oauth-exchanges.ts'

const messages: Readonly<Record<Breakage, RegExp>> = {
  'status 500': /^\w+ answered 500$/,
  html: /^\w+ did not answer in JSON$/,
  '10 MB': /^\w+ answered more than 65536 bytes$/,
  nothing: /^\w+ took too long to answer$/,
  redirect: /^\w+ answered 307$/,
}
const breakages = Object.keys(messages) as Breakage[]

const endpoints: readonly (readonly [OAuthProviderName, Endpoint])[] = [
  ['twitch', 'discovery'],
  ['twitch', 'token'],
  ['twitch', 'keys'],
  ['google', 'discovery'],
  ['google', 'token'],
  ['google', 'keys'],
  ['discord', 'token'],
  ['discord', 'userinfo'],
]

/** Everything that a log could say of an error. */
const toldBy = (error: unknown) => inspect(error, { depth: 20, showHidden: true })

const secretsOf = (double: OAuthDouble, { round, back }: Returned): string[] => [
  back.code,
  round.verifier,
  ...Object.entries(double.variables).flatMap(([name, value]) => (name.endsWith('_SECRET') ? [value] : [])),
  ...double.tokensIssued.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? []].flat()),
]

/** How the exchange fails in a process that has just started, and after how long. */
async function exchangeFails(double: OAuthDouble, { round, back }: Returned) {
  const began = performance.now()
  const error = await providerAt(double)
    .exchange(round, back)
    .then(
      () => undefined,
      (failure: unknown) => failure,
    )
  return { error, millis: performance.now() - began }
}

describe.concurrent.each(endpoints)('%s, asked for its %s', async (name, endpoint) => {
  const double = await startDouble[name]()

  test.sequential.each(breakages)(
    'with an answer of "%s" ends the sign-in with a clear error within 10 s',
    async (how) => {
      const gone = await goAndReturn(providerAt(double), double, { scopes: 'chat' })
      double.break(how, endpoint)
      const { error, millis } = await exchangeFails(double, gone)
      double.break()
      expect(error).toBeInstanceOf(OAuthProviderTrouble)
      expect((error as Error).message).toMatch(messages[how])
      expect(millis).toBeLessThan(10_000)
      for (const secret of secretsOf(double, gone)) expect(toldBy(error)).not.toContain(secret)
    },
  )
})

test('an answer without end is broken off, not read to its end', async () => {
  const double = await startDouble.discord()
  const gone = await goAndReturn(providerAt(double), double)
  double.break('10 MB')
  await exchangeFails(double, gone)
  expect(double.bytesSent()).toBeGreaterThan(65_536)
  expect(double.bytesSent()).toBeLessThan(10_000_000)
})

test('a redirect of a provider is not followed, nor does it learn what was asked', async () => {
  const double = await startDouble.discord()
  const gone = await goAndReturn(providerAt(double), double)
  double.break('redirect')
  await exchangeFails(double, gone)
  expect(double.asked('trap')).toBe(0)
})

test('a provider that is not there is trouble, and said to be', async () => {
  const nowhere = { SVC_GOOGLE_ISSUER_URL: 'http://127.0.0.1:9' }
  const double = await startDouble.google()
  const gone = await goAndReturn(providerAt(double), double)
  const google = providerAt({ variables: { ...double.variables, ...nowhere } })
  await expect(google.exchange(gone.round, gone.back)).rejects.toThrow('google could not be reached')
})

test('a provider at https is never asked without TLS, whatever it says of itself', async () => {
  const double = await startDouble.google()
  const fetch = createBoundedFetch('google', 'https://accounts.google.com')
  const asked = { method: 'GET', headers: {}, redirect: 'manual', body: undefined } as const
  await expect(fetch(`${double.issuerUrl}/token`, asked)).rejects.toThrow(OAuthProviderTrouble)
  await expect(fetch('file:///etc/passwd', asked)).rejects.toThrow(OAuthProviderTrouble)
  expect(double.asked('token')).toBe(0)
})

test('a refusal tells no secret either', async () => {
  const double = await startDouble.twitch()
  const gone = await goAndReturn(providerAt(double), double)
  await providerAt(double).exchange(gone.round, gone.back)
  const { error } = await exchangeFails(double, gone)
  expect(error).toBeInstanceOf(OAuthDenied)
  for (const secret of secretsOf(double, gone)) expect(toldBy(error)).not.toContain(secret)
})

test('trouble with a refresh tells no secret, and is no refusal', async () => {
  const double = await startDouble.discord()
  const { round, back } = await goAndReturn(providerAt(double), double)
  const { tokens } = await providerAt(double).exchange(round, back)
  double.break('status 500')
  const error = await providerAt(double)
    .refresh(tokens.refreshToken ?? '')
    .catch((failure: unknown) => failure)
  expect(error).toBeInstanceOf(OAuthProviderTrouble)
  expect(toldBy(error)).not.toContain(tokens.refreshToken)
})
