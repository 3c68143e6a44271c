import { expect, test } from 'vitest'
import { tokensOf } from '../../../providers/oauth/answers.ts'

const asked = { scopes: ['identify'], refreshToken: 'the one that was used' }

test('what an answer leaves out stays as it was asked for', () => {
  expect(tokensOf({ access_token: 'a' }, asked)).toEqual({
    accessToken: 'a',
    refreshToken: 'the one that was used',
    expiresAt: null,
    scopes: ['identify'],
  })
})

test.each([-1, Number.POSITIVE_INFINITY, 1e300, Number.NaN])('an expiry in %d seconds says nothing', (expires_in) => {
  expect(tokensOf({ access_token: 'a', expires_in }, asked).expiresAt).toBeNull()
})

test('a list of scopes without end is cut, and what is no scope is left out', () => {
  const scope = `good ${'x'.repeat(300)} bad\u0000 ${Array(1000).fill('more').join(' ')}`
  const { scopes } = tokensOf({ access_token: 'a', scope }, asked)
  expect(scopes).toHaveLength(50)
  expect(new Set(scopes)).toEqual(new Set(['good', 'more']))
})
