import { expect, test } from 'vitest'
import { startDiscord } from '../../support/oauth-discord.ts'
import { providerAt, signInAt, someRound } from '../../support/oauth-exchanges.ts'

const double = await startDiscord()
const discord = providerAt(double)

test('Discord is asked as OAuth 2 has it: no nonce, no PKCE, and nothing looked up before', async () => {
  const url = await discord.authorizationUrl(someRound())
  expect(`${url.origin}${url.pathname}`).toBe(`${double.issuerUrl}/oauth2/authorize`)
  expect([...url.searchParams.keys()].toSorted()).toEqual([
    'client_id',
    'redirect_uri',
    'response_type',
    'scope',
    'state',
  ])
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
