/**
 * An ID token is accepted only with a valid signature of the provider, for this client and this authorization request.
 */
import { inspect } from 'node:util'
import { generateKeyPair, type JWTPayload } from 'jose'
import { describe, expect, test } from 'vitest'
import { OAuthDeniedError, OAuthProviderError } from '../../../providers/oauth/provider.ts'
import { createProvider, signInAt } from '../../support/oauth-exchanges.ts'
import { startGoogle } from '../../support/oauth-google.ts'
import { startTwitch } from '../../support/oauth-twitch.ts'

const start = { google: startGoogle, twitch: startTwitch }

describe.each(['google', 'twitch'] as const)('%s', async (name) => {
  const double = await start[name]()
  const provider = createProvider(double)

  test.each<[string, (claims: JWTPayload) => JWTPayload]>([
    ['of another authorization request', (claims) => ({ ...claims, nonce: 'of another request' })],
    ['for another client', (claims) => ({ ...claims, aud: 'another-client' })],
    ['with another authorized party', (claims) => ({ ...claims, aud: [String(claims.aud), 'x'], azp: 'x' })],
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://issuer.example.com' })],
  ])('an ID token %s is refused', async (_, claims) => {
    double.forge({ claims })
    await expect(signInAt(provider, double)).rejects.toThrow(OAuthDeniedError)
  })

  test.each<[string, (claims: JWTPayload) => JWTPayload]>([
    ['without a nonce', ({ nonce: _nonce, ...claims }) => claims],
    ['that has expired', (claims) => ({ ...claims, exp: 1_700_000_000, iat: 1_699_999_000 })],
    ['without a subject', ({ sub: _sub, ...claims }) => claims],
    ['with a number as subject', (claims) => ({ ...claims, sub: 4711 as unknown as string })],
    ['with a subject of 256 characters', (claims) => ({ ...claims, sub: 'x'.repeat(256) })],
    ['with an empty subject', (claims) => ({ ...claims, sub: '' })],
  ])('an ID token %s is an error', async (_, claims) => {
    double.forge({ claims })
    await expect(signInAt(provider, double)).rejects.toThrow(OAuthProviderError)
  })

  test('an ID token signed with another key is an error', async () => {
    const { privateKey } = await generateKeyPair('RS256')
    double.forge({ key: privateKey })
    const error = await signInAt(provider, double).catch((failure: unknown) => failure)
    expect(error).toBeInstanceOf(OAuthProviderError)
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(double.issuedTokens.at(-1)?.accessToken)
  })

  test.each([5, ['me@example.com'], { at: 'example.com' }, '', ' \u200b@example.com'])(
    'the invalid address %j counts as missing',
    async (email) => {
      double.forge({ claims: (claims) => ({ ...claims, email, email_verified: true }) })
      const { identity } = await signInAt(provider, double)
      expect(identity.verifiedEmail).toBeNull()
    },
  )

  test('an address is trimmed and normalized to NFC', async () => {
    double.forge({ claims: (claims) => ({ ...claims, email: ' Jose\u0301@example.com ', email_verified: true }) })
    const { identity } = await signInAt(provider, double)
    expect(identity.verifiedEmail).toBe('José@example.com')
  })
})
