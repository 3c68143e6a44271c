import { expect, test } from 'vitest'
import { OAuthDenied } from '../../../providers/oauth/provider.ts'
import { goAndReturn, providerAt, signInAt, someRound } from '../../support/oauth-exchanges.ts'
import { startGoogle } from '../../support/oauth-google.ts'

const double = await startGoogle()
const google = providerAt(double)

test.each([
  { says: true, counts: true },
  { says: 'true', counts: true },
  { says: false, counts: false },
  { says: 'false', counts: false },
] as const)('an address with email_verified $says counts as verified: $counts', async ({ says, counts }) => {
  double.account = { providerUserId: '1', email: 'me@example.com', emailVerified: says }
  const { identity } = await signInAt(google, double)
  expect(identity.verifiedEmail).toBe(counts ? 'me@example.com' : null)
})

test('a code is worth nothing without the verifier of the round in which it was given', async () => {
  const { round, back } = await goAndReturn(google, double)
  await expect(google.exchange({ ...round, verifier: someRound().verifier }, back)).rejects.toThrow(OAuthDenied)
})

test.each([undefined, 'https://accounts.example.com'])(
  'an answer that came from %s instead of Google is refused before its code is used',
  async (iss) => {
    const { round, back } = await goAndReturn(google, double)
    const asked = double.asked('token')
    await expect(google.exchange(round, { code: back.code, iss })).rejects.toThrow(OAuthDenied)
    expect(double.asked('token')).toBe(asked)
  },
)

test('a sign-in asks for the identity only, and gets no refresh token', async () => {
  const { searchParams } = await google.authorizationUrl(someRound())
  expect(searchParams.get('scope')).toBe('openid email')
  expect(searchParams.has('access_type')).toBe(false)
  const { tokens } = await signInAt(google, double)
  expect(tokens.refreshToken).toBeNull()
})

test('connecting chat asks for YouTube and for a refresh token that stays the same', async () => {
  const { searchParams } = await google.authorizationUrl(someRound({ scopes: 'chat' }))
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

test('what Google says of itself is asked once, however many come at the same time', async () => {
  const fresh = providerAt(double)
  const asked = double.asked('discovery')
  await Promise.all(Array.from({ length: 20 }, () => fresh.authorizationUrl(someRound())))
  await signInAt(fresh, double)
  expect(double.asked('discovery')).toBe(asked + 1)
})

test('a failed question for what Google says of itself is asked again', async () => {
  const fresh = providerAt(double)
  double.break('status 500', 'discovery')
  await expect(fresh.authorizationUrl(someRound())).rejects.toThrow('google answered 500')
  double.break()
  await expect(fresh.authorizationUrl(someRound())).resolves.toHaveProperty('href')
})
