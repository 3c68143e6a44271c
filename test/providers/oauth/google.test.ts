/** Sign-in with Google, against an imitation. */
import { expect, test } from 'vitest'
import { OAuthDeniedError } from '../../../providers/oauth/provider.ts'
import { authorizeAt, createProvider, newRequest, signInAt } from '../../support/oauth-exchanges.ts'
import { startGoogle } from '../../support/oauth-google.ts'

const double = await startGoogle()
const google = createProvider(double)

test.each([
  { emailVerified: true, counts: true },
  { emailVerified: 'true', counts: true },
  { emailVerified: false, counts: false },
  { emailVerified: 'false', counts: false },
] as const)(
  'an address with email_verified $emailVerified counts as verified: $counts',
  async ({ emailVerified, counts }) => {
    double.account = { providerUserId: '1', email: 'me@example.com', emailVerified }
    const { identity } = await signInAt(google, double)
    expect(identity.verifiedEmail).toBe(counts ? 'me@example.com' : null)
  },
)

test('a code of Google requires the verifier of its authorization request', async () => {
  const { request, callback } = await authorizeAt(google, double)
  await expect(google.exchange({ ...request, verifier: newRequest().verifier }, callback)).rejects.toThrow(
    OAuthDeniedError,
  )
})

test.each([undefined, 'https://accounts.example.com'])(
  'a callback with issuer %s is refused before its code is used',
  async (iss) => {
    const { request, callback } = await authorizeAt(google, double)
    const before = double.requestCount('token')
    await expect(google.exchange(request, { code: callback.code, iss })).rejects.toThrow(OAuthDeniedError)
    expect(double.requestCount('token')).toBe(before)
  },
)

test('a sign-in requests identity scopes only and gets no refresh token', async () => {
  const { searchParams } = await google.authorizationUrl(newRequest())
  expect(searchParams.get('scope')).toBe('openid email')
  expect(searchParams.has('access_type')).toBe(false)
  const { tokens } = await signInAt(google, double)
  expect(tokens.refreshToken).toBeNull()
})

test('connecting chat requests a YouTube scope and a refresh token that is not rotated', async () => {
  const { searchParams } = await google.authorizationUrl(newRequest({ scopes: 'chat' }))
  expect(Object.fromEntries(searchParams)).toMatchObject({
    scope: 'openid email https://www.googleapis.com/auth/youtube.readonly',
    access_type: 'offline',
    prompt: 'consent',
    include_granted_scopes: 'true',
    code_challenge_method: 'S256',
  })
  const { tokens } = await signInAt(google, double, { scopes: 'chat' })
  expect(await google.refresh(tokens.refreshToken ?? '')).toMatchObject({ refreshToken: tokens.refreshToken })
})

test('concurrent requests load the discovery document once', async () => {
  const fresh = createProvider(double)
  const before = double.requestCount('discovery')
  await Promise.all(Array.from({ length: 20 }, () => fresh.authorizationUrl(newRequest())))
  await signInAt(fresh, double)
  expect(double.requestCount('discovery')).toBe(before + 1)
})

test('the discovery document is loaded again after a failure', async () => {
  const fresh = createProvider(double)
  double.failWith('status 500', 'discovery')
  await expect(fresh.authorizationUrl(newRequest())).rejects.toThrow('google answered 500')
  double.recover()
  await expect(fresh.authorizationUrl(newRequest())).resolves.toHaveProperty('href')
})
