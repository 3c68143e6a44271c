import { expect, test } from 'vitest'
import { OAuthDenied } from '../../../providers/oauth/provider.ts'
import { goAndReturn, providerAt, signInAt, someRound } from '../../support/oauth-exchanges.ts'
import { startTwitch } from '../../support/oauth-twitch.ts'

const double = await startTwitch()
const twitch = providerAt(double)

test('the scopes that Twitch lists are told, though the standard wants them in one text', async () => {
  const { tokens } = await signInAt(twitch, double)
  expect(tokens.scopes).toEqual(['openid', 'user:read:email'])
  const chat = await signInAt(twitch, double, { scopes: 'chat' })
  expect(chat.tokens.scopes).toEqual(['openid', 'user:read:email', 'chat:read', 'chat:edit'])
})

test('Twitch is asked for the address by name, and without the PKCE that it does not have', async () => {
  const { searchParams } = await twitch.authorizationUrl(someRound())
  expect(JSON.parse(searchParams.get('claims') ?? '')).toEqual({ id_token: { email: null, email_verified: null } })
  expect(searchParams.has('nonce')).toBe(true)
  expect(searchParams.has('code_challenge')).toBe(false)
})

test('an answer that does not say who answered is taken, since Twitch never says it', async () => {
  const { back, round } = await goAndReturn(twitch, double)
  expect(back).not.toHaveProperty('iss')
  await expect(twitch.exchange(round, back)).resolves.toHaveProperty('identity')
})

test('an answer that names another issuer than Twitch is refused before its code is used', async () => {
  const { back, round } = await goAndReturn(twitch, double)
  const asked = double.asked('token')
  await expect(twitch.exchange(round, { ...back, iss: 'https://accounts.example.com' })).rejects.toThrow(OAuthDenied)
  expect(double.asked('token')).toBe(asked)
  await expect(twitch.exchange(round, { ...back, iss: double.issuerUrl })).resolves.toHaveProperty('identity')
})

test('a discovery document that does not say whose it is counts as that of the configured place', async () => {
  const silent = await startTwitch({ namesIssuer: false })
  const { identity } = await signInAt(providerAt(silent), silent)
  expect(identity.verifiedEmail).toBe('someone@example.com')
})

test('Twitch replaces refresh tokens, and the new one is the one that counts', async () => {
  const { tokens } = await signInAt(twitch, double)
  const renewed = await twitch.refresh(tokens.refreshToken ?? '')
  expect(renewed.refreshToken).toBe(double.tokensIssued.at(-1)?.refreshToken)
  expect(renewed.refreshToken).not.toBe(tokens.refreshToken)
})
