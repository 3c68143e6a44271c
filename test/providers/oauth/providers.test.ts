import { describe, expect, test } from 'vitest'
import { OAuthDenied, OAuthProviderTrouble, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import {
  goAndReturn,
  providerAt,
  providersWith,
  signInAt,
  someRound,
  startDouble,
} from '../../support/oauth-exchanges.ts'

const elsewhere = { providerUserId: '31337', email: 'else@example.org', emailVerified: true } as const

test('only providers that are configured are there, in the order in which they are named', () => {
  expect([...providersWith({}).keys()]).toEqual([])
  const registered = { SVC_DISCORD_CLIENT_ID: 'a', SVC_DISCORD_CLIENT_SECRET: 'b' }
  const both = { SVC_TWITCH_CLIENT_ID: 'a', SVC_TWITCH_CLIENT_SECRET: 'b', ...registered }
  expect([...providersWith(registered).keys()]).toEqual(['discord'])
  expect([...providersWith(both).keys()]).toEqual(['twitch', 'discord'])
})

describe.each(oauthProviderNames)('%s', async (name) => {
  const double = await startDouble[name]()
  const provider = providerAt(double)

  test('says who came back, with an address that it has verified, and gives tokens', async () => {
    double.account = elsewhere
    const { identity, tokens } = await signInAt(provider, double)
    expect(identity).toEqual({ providerUserId: '31337', verifiedEmail: 'else@example.org' })
    expect(tokens.accessToken).toBe(double.tokensIssued.at(-1)?.accessToken)
    expect(tokens.expiresAt?.getTime()).toBeGreaterThan(Date.now() + 3000_000)
  })

  test.each([
    { email: 'else@example.org', emailVerified: false },
    { email: 'else@example.org', emailVerified: 'false' },
    { email: null, emailVerified: true },
    { email: 'no address', emailVerified: true },
    { email: `${'x'.repeat(250)}@example.org`, emailVerified: true },
    { email: 'else\u0000@example.org', emailVerified: true },
  ] as const)('vouches for no address when it says $email, verified $emailVerified', async (address) => {
    double.account = { ...elsewhere, ...address }
    const { identity } = await signInAt(provider, double)
    expect(identity).toEqual({ providerUserId: '31337', verifiedEmail: null })
  })

  test('takes a code once', async () => {
    const { round, back } = await goAndReturn(provider, double)
    await provider.exchange(round, back)
    await expect(provider.exchange(round, back)).rejects.toThrow(OAuthDenied)
  })

  test('takes no code that it never gave', async () => {
    const { round, back } = await goAndReturn(provider, double)
    await expect(provider.exchange(round, { ...back, code: 'made-up' })).rejects.toThrow(OAuthDenied)
  })

  test('takes no code for another address of ours than it was sent to', async () => {
    const { round, back } = await goAndReturn(provider, double)
    const elsewhere = { ...round, redirectUri: 'http://localhost:8081/elsewhere' }
    await expect(provider.exchange(elsewhere, back)).rejects.toThrow(OAuthDenied)
  })

  test('gives new tokens for the refresh token of a chat that was connected', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const renewed = await provider.refresh(tokens.refreshToken ?? '')
    expect(renewed.accessToken).not.toBe(tokens.accessToken)
    const again = await provider.refresh(renewed.refreshToken ?? '')
    expect(again.accessToken).toBe(double.tokensIssued.at(-1)?.accessToken)
  })

  test('denies a refresh once the grant is withdrawn', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    await double.revoke()
    await expect(provider.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthDenied)
  })

  test('is in trouble, and denies nobody, when our own secret is wrong', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const { round, back } = await goAndReturn(provider, double)
    const wrong = { ...double.variables, [`SVC_${name.toUpperCase()}_CLIENT_SECRET`]: 'mistyped' }
    const misconfigured = providerAt({ variables: wrong })
    await expect(misconfigured.exchange(round, back)).rejects.toThrow(OAuthProviderTrouble)
    await expect(misconfigured.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthProviderTrouble)
  })

  test('sends the browser away without any secret of ours', async () => {
    const round = someRound()
    const url = await provider.authorizationUrl(round)
    expect(url.href).toContain(`state=${round.state}`)
    expect(url.href).not.toContain(double.variables[`SVC_${name.toUpperCase()}_CLIENT_SECRET`])
    expect(url.href).not.toContain(round.verifier)
  })
})
