/** The admission of concurrent requests of users in one statement: sign-in, rate limit and reads. */
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi({ SVC_RATE_LIMITS: highLimits({ relay_active: 3 }) })
})

const activeOf = ({ bearer }: { bearer: string }) => api.get('/relay/active', { bearer })
const remaining = (header: string | null) => /r=(\d+)/.exec(header ?? '')?.[1]
const requestsOf = async (userId: string) =>
  (
    await api.sql<
      { requests: number }[]
    >`select requests from rate_limit_windows where key = ${`relay_active:${userId}`}`
  )[0]?.requests

describe('requests with an access token', () => {
  test('of several users at the same time are counted each in the window of its user', async () => {
    const users = await Promise.all([api.given.user(), api.given.user()])
    const callers = [0, 1, 0, 1, 0, 0]
    const answers = await Promise.all(callers.map((index) => activeOf(users[index] ?? { bearer: '' })))
    // The service may receive concurrent requests in another order.
    const countsOf = (index: number) =>
      answers
        .filter((_, at) => callers[at] === index)
        .map(({ status, headers }) => `${status}, remaining ${remaining(headers.get('ratelimit'))}`)
        .toSorted()
    expect(countsOf(0)).toEqual(['200, remaining 0', '200, remaining 1', '200, remaining 2', '429, remaining 0'])
    expect(countsOf(1)).toEqual(['200, remaining 1', '200, remaining 2'])
    expect(await Promise.all(users.map(({ userId }) => requestsOf(userId)))).toEqual([4, 2])
  })

  test('that are refused as signed out are not counted, beside admitted ones of the same user', async () => {
    const user = await api.given.user()
    const before = { bearer: user.bearer }
    const { body } = await api.post<{ cp_access_jwt: string }>('/auth/refresh', { refresh_token: user.refreshToken })
    expect((await activeOf({ bearer: body.cp_access_jwt })).status).toBe(200)
    await api.sql`update auth_sessions set revoked_at = now(), revoked_for = 'revoked' where id = ${user.authSessionId}`
    const refused = await Promise.all(Array.from({ length: 5 }, () => activeOf(before)))
    expect(refused.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401])
    for (const { headers } of refused) expect(headers.get('ratelimit')).toBeNull()
    expect(await requestsOf(user.userId)).toBe(1)
  })

  test('of a disabled account are refused, and of a token of another user of the same sign-in', async () => {
    const [disabled, owner, stranger] = await Promise.all([api.given.user(), api.given.user(), api.given.user()])
    await api.sql`update users set disabled_at = now() where id = ${disabled.userId}`
    const { userId } = stranger
    const forged = await api.services.accessTokens.sign({ userId, authSessionId: owner.authSessionId })
    for (const path of ['/relay/active', '/auth/session', '/auth/sessions'])
      for (const bearer of [disabled.bearer, forged]) expect((await api.get(path, { bearer })).status).toBe(401)
  })
})
