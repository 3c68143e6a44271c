/** What holds for every provider of sign-ins, against imitations. */
import { describe, expect, test } from 'vitest'
import { OAuthDeniedError, OAuthProviderError, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import {
  authorizeAt,
  createProvider,
  createProviders,
  newRequest,
  signInAt,
  startDouble,
} from '../../support/oauth-exchanges.ts'

const account = { providerUserId: '31337', email: 'else@example.org', emailVerified: true } as const

test('only configured providers are created, in a fixed order', () => {
  expect([...createProviders({}).keys()]).toEqual([])
  const registered = { SVC_DISCORD_CLIENT_ID: 'a', SVC_DISCORD_CLIENT_SECRET: 'b' }
  const both = { SVC_TWITCH_CLIENT_ID: 'a', SVC_TWITCH_CLIENT_SECRET: 'b', ...registered }
  expect([...createProviders(registered).keys()]).toEqual(['discord'])
  expect([...createProviders(both).keys()]).toEqual(['twitch', 'discord'])
})

describe.each(oauthProviderNames)('%s', async (name) => {
  const double = await startDouble[name]()
  const provider = createProvider(double)

  test('returns the user id, the verified address and tokens', async () => {
    double.account = account
    const { identity, tokens } = await signInAt(provider, double)
    expect(identity).toEqual({ providerUserId: '31337', verifiedEmail: 'else@example.org' })
    expect(tokens.accessToken).toBe(double.issuedTokens.at(-1)?.accessToken)
    expect(tokens.expiresAt?.getTime()).toBeGreaterThan(Date.now() + 3000_000)
  })

  test.each([
    { email: 'else@example.org', emailVerified: false },
    { email: 'else@example.org', emailVerified: 'false' },
    { email: null, emailVerified: true },
    { email: 'no address', emailVerified: true },
    { email: `${'x'.repeat(250)}@example.org`, emailVerified: true },
    { email: 'else\u0000@example.org', emailVerified: true },
  ] as const)('returns no verified address for $email with verified $emailVerified', async (address) => {
    double.account = { ...account, ...address }
    const { identity } = await signInAt(provider, double)
    expect(identity).toEqual({ providerUserId: '31337', verifiedEmail: null })
  })

  test('accepts a code once', async () => {
    const { request, callback } = await authorizeAt(provider, double)
    await provider.exchange(request, callback)
    await expect(provider.exchange(request, callback)).rejects.toThrow(OAuthDeniedError)
  })

  test('refuses an unknown code', async () => {
    const { request, callback } = await authorizeAt(provider, double)
    await expect(provider.exchange(request, { ...callback, code: 'made-up' })).rejects.toThrow(OAuthDeniedError)
  })

  test('refuses a code with another redirect URI', async () => {
    const { request, callback } = await authorizeAt(provider, double)
    const changed = { ...request, redirectUri: 'http://localhost:8081/elsewhere' }
    await expect(provider.exchange(changed, callback)).rejects.toThrow(OAuthDeniedError)
  })

  test('refreshes the tokens of a connected chat', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const renewed = await provider.refresh(tokens.refreshToken ?? '')
    expect(renewed.accessToken).not.toBe(tokens.accessToken)
    const again = await provider.refresh(renewed.refreshToken ?? '')
    expect(again.accessToken).toBe(double.issuedTokens.at(-1)?.accessToken)
  })

  test('refuses a refresh after the grant is withdrawn', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    await double.withdrawGrants()
    await expect(provider.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthDeniedError)
  })

  test('reports a provider error, not a refusal, for a wrong client secret', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const { request, callback } = await authorizeAt(provider, double)
    const wrong = { ...double.variables, [`SVC_${name.toUpperCase()}_CLIENT_SECRET`]: 'mistyped' }
    const misconfigured = createProvider({ variables: wrong })
    await expect(misconfigured.exchange(request, callback)).rejects.toThrow(OAuthProviderError)
    await expect(misconfigured.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthProviderError)
  })

  test('puts neither the client secret nor the verifier into the authorization URL', async () => {
    const request = newRequest()
    const url = await provider.authorizationUrl(request)
    expect(url.href).toContain(`state=${request.state}`)
    expect(url.href).not.toContain(double.variables[`SVC_${name.toUpperCase()}_CLIENT_SECRET`])
    expect(url.href).not.toContain(request.verifier)
  })
})
