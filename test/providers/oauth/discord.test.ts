import { expect, test } from 'vitest'
import { OAuthDenied } from '../../../providers/oauth/provider.ts'
import { startDiscord } from '../../support/oauth-discord.ts'
import { goAndReturn, providerAt, signInAt, someRound } from '../../support/oauth-exchanges.ts'

const double = await startDiscord()
const discord = providerAt(double)

test('Discord is asked as OAuth 2 has it: with PKCE, without a nonce, and with nothing looked up before', async () => {
  const url = await discord.authorizationUrl(someRound())
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

test('a code of Discord is worth nothing without the verifier of the round in which it was issued', async () => {
  const { round, back } = await goAndReturn(discord, double)
  await expect(discord.exchange({ ...round, verifier: someRound().verifier }, back)).rejects.toThrow(OAuthDenied)
})

test('an answer that names another issuer than Discord is refused before its code is used, one that names none is not', async () => {
  const { round, back } = await goAndReturn(discord, double)
  const asked = double.asked('token')
  const foreign = { ...back, iss: 'https://accounts.example.com' }
  await expect(discord.exchange(round, foreign)).rejects.toThrow(OAuthDenied)
  expect(double.asked('token')).toBe(asked)
  await expect(discord.exchange(round, back)).resolves.toHaveProperty('identity')
})

test('an answer that names Discord is taken', async () => {
  const { round, back } = await goAndReturn(discord, double)
  const answer = await discord.exchange(round, { ...back, iss: double.issuerUrl })
  expect(answer).toHaveProperty('identity')
})

test('a sign-in asks for the identity only, connecting chat for the servers as well', async () => {
  expect((await signInAt(discord, double)).tokens.scopes).toEqual(['identify', 'email'])
  expect((await signInAt(discord, double, { scopes: 'chat' })).tokens.scopes).toEqual(['identify', 'email', 'guilds'])
})

test('Discord replaces refresh tokens, and the old one is worth nothing', async () => {
  const { tokens } = await signInAt(discord, double)
  const renewed = await discord.refresh(tokens.refreshToken ?? '')
  expect(renewed.refreshToken).not.toBe(tokens.refreshToken)
  await expect(discord.refresh(tokens.refreshToken ?? '')).rejects.toThrow('discord refused: invalid_grant')
})
