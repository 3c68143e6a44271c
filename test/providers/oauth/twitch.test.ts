/** Sign-in with Twitch, against an imitation. */
import { expect, test } from 'vitest'
import { OAuthDeniedError } from '../../../providers/oauth/provider.ts'
import { authorizeAt, createProvider, newRequest, signInAt } from '../../support/oauth-exchanges.ts'
import { startTwitch } from '../../support/oauth-twitch.ts'

const double = await startTwitch()
const twitch = createProvider(double)

test('scopes that Twitch sends as an array are returned', async () => {
  const { tokens } = await signInAt(twitch, double)
  expect(tokens.scopes).toEqual(['openid', 'user:read:email'])
  const chat = await signInAt(twitch, double, { scopes: 'chat' })
  expect(chat.tokens.scopes).toEqual(['openid', 'user:read:email', 'chat:read', 'chat:edit'])
})

test('the authorization URL of Twitch requests the address as a claim and has no PKCE', async () => {
  const { searchParams } = await twitch.authorizationUrl(newRequest())
  expect(JSON.parse(searchParams.get('claims') ?? '')).toEqual({ id_token: { email: null, email_verified: null } })
  expect(searchParams.has('nonce')).toBe(true)
  expect(searchParams.has('code_challenge')).toBe(false)
})

test('a callback without an issuer is accepted, because Twitch never sends one', async () => {
  const { callback, request } = await authorizeAt(twitch, double)
  expect(callback).not.toHaveProperty('iss')
  await expect(twitch.exchange(request, callback)).resolves.toHaveProperty('identity')
})

test('a callback with another issuer is refused before its code is used', async () => {
  const { callback, request } = await authorizeAt(twitch, double)
  const before = double.requestCount('token')
  await expect(twitch.exchange(request, { ...callback, iss: 'https://accounts.example.com' })).rejects.toThrow(
    OAuthDeniedError,
  )
  expect(double.requestCount('token')).toBe(before)
  await expect(twitch.exchange(request, { ...callback, iss: double.issuerUrl })).resolves.toHaveProperty('identity')
})

test('a discovery document without an issuer gets the configured one', async () => {
  const withoutIssuer = await startTwitch({ hasIssuer: false })
  const { identity } = await signInAt(createProvider(withoutIssuer), withoutIssuer)
  expect(identity.verifiedEmail).toBe('someone@example.com')
})

test('Twitch rotates refresh tokens', async () => {
  const { tokens } = await signInAt(twitch, double)
  const renewed = await twitch.refresh(tokens.refreshToken ?? '')
  expect(renewed.refreshToken).toBe(double.issuedTokens.at(-1)?.refreshToken)
  expect(renewed.refreshToken).not.toBe(tokens.refreshToken)
})
