/** Sign-in with Discord, against an imitation. */
import { expect, test } from 'vitest'
import { OAuthDeniedError } from '../../../providers/oauth/provider.ts'
import { startDiscord } from '../../support/oauth-discord.ts'
import { authorizeAt, createProvider, newRequest, signInAt } from '../../support/oauth-exchanges.ts'

const double = await startDiscord()
const discord = createProvider(double)

test('the authorization URL of Discord has PKCE and no nonce', async () => {
  const url = await discord.authorizationUrl(newRequest())
  expect(`${url.origin}${url.pathname}`).toBe(`${double.issuerUrl}/oauth2/authorize`)
  expect([...url.searchParams.keys()].toSorted()).toEqual([
    'client_id',
    'code_challenge',
    'code_challenge_method',
    'redirect_uri',
    'response_type',
    'scope',
    'state',
  ])
})

test('a code of Discord requires the verifier of its authorization request', async () => {
  const { request, callback } = await authorizeAt(discord, double)
  await expect(discord.exchange({ ...request, verifier: newRequest().verifier }, callback)).rejects.toThrow(
    OAuthDeniedError,
  )
})

test('a callback with another issuer is refused before its code is used, one without an issuer is accepted', async () => {
  const { request, callback } = await authorizeAt(discord, double)
  const before = double.requestCount('token')
  const foreign = { ...callback, iss: 'https://accounts.example.com' }
  await expect(discord.exchange(request, foreign)).rejects.toThrow(OAuthDeniedError)
  expect(double.requestCount('token')).toBe(before)
  await expect(discord.exchange(request, callback)).resolves.toHaveProperty('identity')
})

test('a callback with the issuer of Discord is accepted', async () => {
  const { request, callback } = await authorizeAt(discord, double)
  const answer = await discord.exchange(request, { ...callback, iss: double.issuerUrl })
  expect(answer).toHaveProperty('identity')
})

test('a sign-in requests identity scopes only, connecting chat also requests guilds', async () => {
  expect((await signInAt(discord, double)).tokens.scopes).toEqual(['identify', 'email'])
  expect((await signInAt(discord, double, { scopes: 'chat' })).tokens.scopes).toEqual(['identify', 'email', 'guilds'])
})

test('Discord rotates refresh tokens, and a used one is refused', async () => {
  const { tokens } = await signInAt(discord, double)
  const renewed = await discord.refresh(tokens.refreshToken ?? '')
  expect(renewed.refreshToken).not.toBe(tokens.refreshToken)
  await expect(discord.refresh(tokens.refreshToken ?? '')).rejects.toThrow('discord refused: invalid_grant')
})
