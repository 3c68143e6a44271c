/** The token responses of providers, and what is read of them. */
import { expect, test } from 'vitest'
import { parseTokens } from '../../../providers/oauth/tokens.ts'

const requested = { scopes: ['identify'], refreshToken: 'the used refresh token' }

test('a response without scopes and refresh token keeps the requested ones', () => {
  expect(parseTokens({ access_token: 'a' }, requested)).toEqual({
    accessToken: 'a',
    refreshToken: 'the used refresh token',
    expiresAt: null,
    scopes: ['identify'],
  })
})

test.each([-1, Number.POSITIVE_INFINITY, 1e300, Number.NaN])('expires_in %d counts as missing', (expires_in) => {
  expect(parseTokens({ access_token: 'a', expires_in }, requested).expiresAt).toBeNull()
})

test('invalid scopes are dropped and the list is limited', () => {
  const scope = `good ${'x'.repeat(300)} bad\u0000 ${Array(1000).fill('more').join(' ')}`
  const { scopes } = parseTokens({ access_token: 'a', scope }, requested)
  expect(scopes).toHaveLength(50)
  expect(new Set(scopes)).toEqual(new Set(['good', 'more']))
})
