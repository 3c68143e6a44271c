/** The operator password: the routes that need it, and the limits of wrong guesses. */
import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi, statusAndCode, type TestApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { operator, operatorPassword } from '../../support/relays.ts'

const basic = (name: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`,
})

let api: TestApi
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
})

describe('the routes of operators', () => {
  const routes: [string, string][] = [
    ['GET', '/admin/users?email=a'],
    ['GET', `/admin/users/${randomUUID()}`],
    ['POST', `/admin/users/${randomUUID()}/grant`],
    ['POST', `/admin/users/${randomUUID()}/disable`],
    ['POST', `/admin/users/${randomUUID()}/relay-access`],
    ['GET', '/admin/audit'],
    ['GET', '/admin/overview'],
    ['GET', `/admin/users/${randomUUID()}/subscription`],
    ['POST', '/admin/sign-in'],
    ['POST', '/admin/sign-out'],
    ['GET', '/admin/sessions'],
    ['GET', `/admin/sessions/${randomUUID()}`],
    ['POST', `/admin/sessions/${randomUUID()}/disconnect`],
    ['POST', `/admin/sessions/${randomUUID()}/transition`],
    ['DELETE', '/admin/sessions'],
    ['GET', '/admin/anything'],
  ]

  test('do not exist without a configured password', async () => {
    const apiWithoutOperators = await startApi()
    for (const [method, path] of routes) {
      const headers = basic('operator', '')
      const response = await fetch(`${apiWithoutOperators.url}/api/v1${path}`, { method, headers })
      expect([method, path, response.status]).toEqual([method, path, 404])
      expect(response.headers.get('www-authenticate')).toBeNull()
    }
  })

  test.each<[string, Record<string, string>]>([
    ['no credentials', {}],
    ['a wrong password', basic('operator', 'wrong')],
    ['another user name', basic('root', operatorPassword)],
    ['a part of the password', basic('operator', operatorPassword.slice(0, -1))],
    ['a bearer token', { Authorization: `Bearer ${operatorPassword}` }],
    ['invalid base64', { Authorization: 'Basic ¬¬¬' }],
  ])('refuse %s and ask for credentials', async (_, headers) => {
    const response = await api.get('/admin/sessions', { headers })
    expect(statusAndCode(response)).toEqual([401, 'invalid_operator'])
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm="/)
  })
})

describe('five wrong operator passwords within a minute', () => {
  const startLimitedApi = () =>
    startApi({ SVC_OPERATOR_PASSWORD: operatorPassword, SVC_RATE_LIMITS: highLimits({ operator: 5 }) })

  test('block the client address for the rest of the minute, even with the right password', async () => {
    const limitedApi = await startLimitedApi()
    const listSessions = (headers: Record<string, string>, ip: string) =>
      limitedApi.get('/admin/sessions', { headers, ip })
    for (let index = 0; index < 10; index += 1) expect((await listSessions(operator, '192.0.2.1')).status).toBe(200)
    for (let index = 0; index < 5; index += 1) {
      const response = await listSessions(basic('operator', `guess ${index}`), '192.0.2.1')
      expect(statusAndCode(response)).toEqual([401, 'invalid_operator'])
    }
    const refused = await listSessions(operator, '192.0.2.1')
    expect(statusAndCode(refused)).toEqual([429, 'rate_limited'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await listSessions(operator, '192.0.2.2')).status).toBe(200)
    await limitedApi.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect((await listSessions(operator, '192.0.2.1')).status).toBe(200)
  })

  test('are counted exactly in concurrent requests', async () => {
    const limitedApi = await startLimitedApi()
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        limitedApi.get('/admin/sessions', { headers: basic('operator', `${index}`) }),
      ),
    )
    expect(responses.filter(({ status }) => status === 401)).toHaveLength(5)
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(35)
  })
})
