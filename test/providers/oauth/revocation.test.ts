/** The revocation of tokens at their provider. */
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { OAuthDeniedError, OAuthProviderError, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { createProvider, signInAt, startDouble } from '../../support/oauth-exchanges.ts'

describe.each(oauthProviderNames)('%s', async (name) => {
  const double = await startDouble[name]()
  const provider = createProvider(double)
  const secretName = `SVC_${name.toUpperCase()}_CLIENT_SECRET`

  test('revokes an access token, also a second time', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const before = double.requestCount('revocation')
    for (let times = 0; times < 2; times += 1)
      await expect(provider.revoke(tokens.accessToken)).resolves.toBeUndefined()
    expect(double.requestCount('revocation')).toBe(before + 2)
  })

  test('accepts the revocation of an unknown token', async () => {
    await expect(provider.revoke('made up')).resolves.toBeUndefined()
  })

  test('a failed revocation is a provider error and contains no secret', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    for (const failure of ['status 500', 'redirect'] as const) {
      double.failWith(failure, 'revocation')
      const error = await provider.revoke(tokens.accessToken).catch((failure: unknown) => failure)
      double.recover()
      expect(error).toBeInstanceOf(OAuthProviderError)
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(tokens.accessToken)
    }
  })

  test('a revocation with a wrong client secret is a provider error', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const mistyped = createProvider({ variables: { ...double.variables, [secretName]: 'mistyped' } })
    await expect(mistyped.revoke(tokens.accessToken)).rejects.toThrow(OAuthProviderError)
  })
})

test.each(['google', 'discord'] as const)('a refresh token revoked at %s is refused', async (name) => {
  const double = await startDouble[name]()
  const provider = createProvider(double)
  const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
  await provider.revoke(tokens.refreshToken ?? '')
  await expect(provider.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthDeniedError)
})
