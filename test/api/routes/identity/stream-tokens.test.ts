/** The route that will replace a stream token. */
import { expect, test } from 'vitest'
import { startApi, statusAndCode } from '../../../support/api.ts'

const api = await startApi()

test('replacing the stream token requires a sign-in and is not available yet', async () => {
  const { bearer } = await api.given.user()
  const tokenOf = async () =>
    (await api.get<{ user: { stream_token: string } }>('/auth/session', { bearer })).body.user.stream_token
  const before = await tokenOf()
  expect(statusAndCode(await api.post('/user/regenerate-tokens', undefined, { bearer }))).toEqual([
    501,
    'not_available',
  ])
  expect(await tokenOf()).toBe(before)
  expect(statusAndCode(await api.post('/user/regenerate-tokens'))).toEqual([401, 'unauthorized'])
})
