/**
 * A failing provider leads to a clear error without secrets. The limits of three requests make the sign-in end within
 * 10 s.
 */
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createBoundedFetch } from '../../../providers/oauth/bounded-fetch.ts'
import { OAuthDeniedError, OAuthProviderError, type OAuthProviderName } from '../../../providers/oauth/provider.ts'
import type { Endpoint, Failure, OAuthDouble } from '../../support/oauth-double.ts'
import { type Authorized, authorizeAt, createProvider, startDouble } from '../../support/oauth-exchanges.ts'

const messages: Readonly<Record<Failure, RegExp>> = {
  'status 500': /^\w+ answered 500$/,
  html: /^\w+ did not answer in JSON$/,
  '10 MB': /^\w+ answered more than 65536 bytes$/,
  nothing: /^\w+ did not answer within 3 s$/,
  redirect: /^\w+ answered 307$/,
}
const failures = Object.keys(messages) as Failure[]

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

/** Everything that a log could contain of an error. */
const inspectAll = (error: unknown) => inspect(error, { depth: 20, showHidden: true })

const secretsOf = (double: OAuthDouble, { request, callback }: Authorized): string[] => [
  callback.code,
  request.verifier,
  ...Object.entries(double.variables).flatMap(([name, value]) => (name.endsWith('_SECRET') ? [value] : [])),
  ...double.issuedTokens.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? []].flat()),
]

const requestCount = (double: OAuthDouble): number =>
  (['discovery', 'token', 'keys', 'userinfo'] as const).reduce(
    (sum, endpoint) => sum + double.requestCount(endpoint),
    0,
  )

/** Exchanges the code with a new client. Returns the error and the number of requests. */
async function failToExchange(double: OAuthDouble, { request, callback }: Authorized) {
  const before = requestCount(double)
  const error = await createProvider(double)
    .exchange(request, callback)
    .then(
      () => undefined,
      (failure: unknown) => failure,
    )
  return { error, requests: requestCount(double) - before }
}

describe.concurrent.each(endpoints)('%s, failing endpoint %s', async (name, endpoint) => {
  const double = await startDouble[name]()

  test.sequential.each(failures)(
    'with "%s" ends the sign-in with a clear error and without further attempts',
    async (failure) => {
      const authorized = await authorizeAt(createProvider(double), double, { scopes: 'chat' })
      double.failWith(failure, endpoint)
      const { error, requests } = await failToExchange(double, authorized)
      double.recover()
      expect(error).toBeInstanceOf(OAuthProviderError)
      expect((error as Error).message).toMatch(messages[failure])
      expect(requests).toBeLessThanOrEqual(3)
      for (const secret of secretsOf(double, authorized)) expect(inspectAll(error)).not.toContain(secret)
    },
  )
})

test('a response beyond the size limit is not read to its end', async () => {
  const double = await startDouble.discord()
  const authorized = await authorizeAt(createProvider(double), double)
  double.failWith('10 MB')
  await failToExchange(double, authorized)
  expect(double.bytesSent()).toBeGreaterThan(65_536)
  expect(double.bytesSent()).toBeLessThan(10_000_000)
})

test('a redirect from a token endpoint is not followed', async () => {
  const double = await startDouble.discord()
  const authorized = await authorizeAt(createProvider(double), double)
  double.failWith('redirect')
  await failToExchange(double, authorized)
  expect(double.requestCount('trap')).toBe(0)
})

test('a provider that cannot be reached is reported as such', async () => {
  const unreachable = { SVC_GOOGLE_ISSUER_URL: 'http://127.0.0.1:9' }
  const double = await startDouble.google()
  const authorized = await authorizeAt(createProvider(double), double)
  const google = createProvider({ variables: { ...double.variables, ...unreachable } })
  await expect(google.exchange(authorized.request, authorized.callback)).rejects.toThrow('google could not be reached')
})

test('a provider configured with HTTPS is never requested over another protocol', async () => {
  const double = await startDouble.google()
  const fetch = createBoundedFetch('google', 'https://accounts.google.com')
  const options = { method: 'GET', headers: {}, redirect: 'manual', body: undefined } as const
  await expect(fetch(`${double.issuerUrl}/token`, options)).rejects.toThrow(OAuthProviderError)
  await expect(fetch('file:///etc/passwd', options)).rejects.toThrow(OAuthProviderError)
  expect(double.requestCount('token')).toBe(0)
})

test('a refusal contains no secret', async () => {
  const double = await startDouble.twitch()
  const authorized = await authorizeAt(createProvider(double), double)
  await createProvider(double).exchange(authorized.request, authorized.callback)
  const { error } = await failToExchange(double, authorized)
  expect(error).toBeInstanceOf(OAuthDeniedError)
  for (const secret of secretsOf(double, authorized)) expect(inspectAll(error)).not.toContain(secret)
})

test('a failed refresh is not a refusal and contains no secret', async () => {
  const double = await startDouble.discord()
  const { request, callback } = await authorizeAt(createProvider(double), double)
  const { tokens } = await createProvider(double).exchange(request, callback)
  double.failWith('status 500')
  const error = await createProvider(double)
    .refresh(tokens.refreshToken ?? '')
    .catch((failure: unknown) => failure)
  expect(error).toBeInstanceOf(OAuthProviderError)
  expect(inspectAll(error)).not.toContain(tokens.refreshToken)
})
