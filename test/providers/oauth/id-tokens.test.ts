/** An ID token is believed only when the provider signed it, for us, in this very round. */
import { inspect } from 'node:util'
import { generateKeyPair, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { OAuthDenied, OAuthProviderTrouble } from '../../../providers/oauth/provider.ts'
import { providerAt, signInAt } from '../../support/oauth-exchanges.ts'
import { startGoogle } from '../../support/oauth-google.ts'
import { startTwitch } from '../../support/oauth-twitch.ts'

const start = { google: startGoogle, twitch: startTwitch }

describe.each(['google', 'twitch'] as const)('%s', async (name) => {
  const double = await start[name]()
  const provider = providerAt(double)

  test.each<[string, (claims: JWTPayload) => JWTPayload]>([
    ['of another round', (claims) => ({ ...claims, nonce: 'of another round' })],
    ['for another client', (claims) => ({ ...claims, aud: 'another-client' })],
    ['for us, but given to another client', (claims) => ({ ...claims, aud: [String(claims.aud), 'x'], azp: 'x' })],
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://issuer.example.com' })],
  ])('an ID token %s is refused', async (_, claims) => {
    double.forge({ claims })
    await expect(signInAt(provider, double)).rejects.toThrow(OAuthDenied)
  })

  test.each<[string, (claims: JWTPayload) => JWTPayload]>([
    ['that does not say of which round it is', ({ nonce: _nonce, ...claims }) => claims],
    ['that is over', (claims) => ({ ...claims, exp: 1_700_000_000, iat: 1_699_999_000 })],
    ['that does not say who it is', ({ sub: _sub, ...claims }) => claims],
    ['whose account is a number', (claims) => ({ ...claims, sub: 4711 as unknown as string })],
    ['whose account is endless', (claims) => ({ ...claims, sub: 'x'.repeat(256) })],
    ['whose account is empty', (claims) => ({ ...claims, sub: '' })],
  ])('an ID token %s is of no use', async (_, claims) => {
    double.forge({ claims })
    await expect(signInAt(provider, double)).rejects.toThrow(OAuthProviderTrouble)
  })

  test('an ID token that somebody else has signed is of no use', async () => {
    const { privateKey } = await generateKeyPair('RS256')
    double.forge({ key: privateKey })
    const error = await signInAt(provider, double).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(OAuthProviderTrouble)
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(double.tokensIssued.at(-1)?.accessToken)
  })

  test.each([5, ['me@example.com'], { at: 'example.com' }, '', ' \u200b@example.com'])(
    'an address that is none, such as %j, counts as missing',
    async (email) => {
      double.forge({ claims: (claims) => ({ ...claims, email, email_verified: true }) })
      const { identity } = await signInAt(provider, double)
      expect(identity.verifiedEmail).toBeNull()
    },
  )

  test('an address is told as it would be typed here: trimmed, and in one form of its letters', async () => {
    double.forge({ claims: (claims) => ({ ...claims, email: ' Jose\u0301@example.com ', email_verified: true }) })
    const { identity } = await signInAt(provider, double)
    expect(identity.verifiedEmail).toBe('José@example.com')
  })
})
