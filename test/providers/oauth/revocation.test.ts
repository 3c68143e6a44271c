/** Revoking tokens at the provider that issued them. */
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { OAuthDenied, OAuthProviderTrouble, oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { providerAt, signInAt, startDouble } from '../../support/oauth-exchanges.ts'

describe.each(oauthProviderNames)('%s', async (name) => {
  const double = await startDouble[name]()
  const provider = providerAt(double)
  const secretName = `SVC_${name.toUpperCase()}_CLIENT_SECRET`

  test('revokes an access token, also when it is asked twice', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const asked = double.asked('revocation')
    for (let times = 0; times < 2; times += 1)
      await expect(provider.revoke(tokens.accessToken)).resolves.toBeUndefined()
    expect(double.asked('revocation')).toBe(asked + 2)
  })

  test('has nothing to revoke of a token that it never issued', async () => {
    await expect(provider.revoke('made up')).resolves.toBeUndefined()
  })

  test('that fails is trouble, and no secret is in it', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    for (const how of ['status 500', 'redirect'] as const) {
      double.break(how, 'revocation')
      const error = await provider.revoke(tokens.accessToken).catch((failure: unknown) => failure)
      double.break()
      expect(error).toBeInstanceOf(OAuthProviderTrouble)
      expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(tokens.accessToken)
    }
  })

  test('that refuses our client is trouble, and the token does not count as revoked', async () => {
    const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
    const mistyped = providerAt({ variables: { ...double.variables, [secretName]: 'mistyped' } })
    await expect(mistyped.revoke(tokens.accessToken)).rejects.toThrow(OAuthProviderTrouble)
  })
})

test.each(['google', 'discord'] as const)('a refresh token that %s has revoked can not be used', async (name) => {
  const double = await startDouble[name]()
  const provider = providerAt(double)
  const { tokens } = await signInAt(provider, double, { scopes: 'chat' })
  await provider.revoke(tokens.refreshToken ?? '')
  await expect(provider.refresh(tokens.refreshToken ?? '')).rejects.toThrow(OAuthDenied)
})
