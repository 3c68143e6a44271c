/** Five sign-ins a minute for each address, whatever way around it is tried. */
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { describe, expect, test } from 'vitest'
import { type Client, createDatabase, startApi, type TestApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { highLimits } from '../../support/environment.ts'

const limits = { SVC_RATE_LIMITS: highLimits({ login: 5 }) }

interface Account {
  readonly email: string
  readonly password: string
}
const login = async (at: Client, { email, password }: Account, ip?: string) =>
  (await at.post('/auth/login', { email, password }, ip === undefined ? {} : { ip })).status
const guess = (): Account => ({ email: `${randomUUID()}@example.com`, password: 'a wrong guess' })
/** The answers to a wrong guess from each of these. */
const guessFrom = async (at: Client, ips: readonly (string | undefined)[]) => {
  const statuses = []
  for (const ip of ips) statuses.push(await login(at, guess(), ip))
  return statuses
}
const ended = [401, 401, 401, 401, 401, 429]

test('two processes share the count, also after both are restarted', async () => {
  const database = await createDatabase()
  atEnd(() => database.drop())
  // All that a process has of its own is created with its API.
  const startTwo = () =>
    Promise.all([1, 2].map(() => startApi({ ...limits, DATABASE_URL: database.url }))) as Promise<[TestApi, TestApi]>
  const [first, second] = await startTwo()
  const account = await first.given.user()
  expect(
    await Promise.all([0, 1, 2, 3].map((round) => login(round % 2 ? first : second, guess(), '192.0.2.1'))),
  ).toEqual([401, 401, 401, 401])
  const [, restarted] = await startTwo()
  expect(await guessFrom(restarted, ['192.0.2.1', '192.0.2.1'])).toEqual([401, 429])
  expect(await login(restarted, account, '192.0.2.1')).toBe(429)
  expect(await login(restarted, account, '192.0.2.2')).toBe(200)
})

test('a right password counts as an attempt and is refused while its address is limited', async () => {
  const api = await startApi(limits)
  const user = await api.given.user()
  const statuses = []
  for (let round = 0; round < 7; round += 1) statuses.push(await login(api, user, '192.0.2.1'))
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
})

test('failed attempts from one address do not block sign-ins from another', async () => {
  const api = await startApi(limits)
  const user = await api.given.user()
  const attack = Array.from({ length: 6 }, () => login(api, { ...user, password: 'a wrong guess' }, '198.51.100.1'))
  expect((await Promise.all(attack)).sort()).toEqual(ended)
  expect(await login(api, user, '192.0.2.1')).toBe(200)
})

describe('attempts are counted for one address', () => {
  test('regardless of X-Forwarded-For while no proxy is trusted', async () => {
    const api = await startApi({ ...limits, SVC_TRUSTED_PROXY_HOPS: '0' })
    const claims = ['1.1.1.1', '2.2.2.2, 3.3.3.3', '2001:db8::1', undefined, 'unknown', '4.4.4.4']
    expect(await guessFrom(api, claims)).toEqual(ended)
  })

  test('regardless of entries before the one that the trusted proxy added', async () => {
    const api = await startApi(limits)
    const claims = ['192.0.2.1', '1.1.1.1, 192.0.2.1', '2.2.2.2,3.3.3.3,192.0.2.1', ', 192.0.2.1', '::1, 192.0.2.1']
    expect(await guessFrom(api, [...claims, 'x, 192.0.2.1'])).toEqual(ended)
    expect(await login(api, guess(), '192.0.2.1, 192.0.2.2')).toBe(401)
  })

  test('across an IPv6 /64, and for an IPv4 address and its IPv4-mapped form', async () => {
    const api = await startApi(limits)
    const neighbours = [
      '2001:db8:1:2::1',
      '2001:db8:1:2::2',
      '2001:db8:1:2:ffff:ffff:ffff:ffff',
      '2001:DB8:1:2:0:0:0:3',
    ]
    expect(await guessFrom(api, [...neighbours, '2001:db8:1:2::5', '2001:db8:1:2:8000::'])).toEqual(ended)
    expect(await login(api, guess(), '2001:db8:1:3::1')).toBe(401)
    const mapped = ['192.0.2.9', '::ffff:192.0.2.9', '192.0.2.9', '::FFFF:192.0.2.9', '192.0.2.9', '::ffff:192.0.2.9']
    expect(await guessFrom(api, mapped)).toEqual(ended)
  })
})

describe('a variant of a path does not bypass the limit', () => {
  /** As it stands: a client library would tidy it up. */
  const post = (url: string, path: string, body: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
      const sent = request(url, { method: 'POST', path, headers, agent: false }, (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.statusCode ?? 0))
      })
      sent.on('error', reject)
      sent.end(body)
    })

  test('every variant is either not found or counted', async () => {
    const api = await startApi(limits)
    const { email, password } = await api.given.user()
    const right = JSON.stringify({ email, password })
    for (let round = 0; round < 5; round += 1) expect(await post(api.url, '/api/v1/auth/login', right)).toBe(200)
    const path = '/api/v1/auth/login'
    for (const [odd, status] of [
      [path, 429],
      [`${path}?`, 429],
      [`${path}?again=1`, 429],
      [`http://elsewhere.example${path}`, 429],
      [`${path}/`, 404],
      [`${path}//`, 404],
      [`${path}.`, 404],
      [`${path};x=1`, 404],
      [`${path}%20`, 404],
      [`${path}%00`, 404],
      [`${path}%3F`, 404],
      [`${path}/.`, 404],
      [`${path}/../login`, 404],
      ['/api/v1/auth/./login', 404],
      ['/api/v1/auth/x/../login', 404],
      ['/api/v1/auth//login', 404],
      ['/api/v1//auth/login', 404],
      ['//api/v1/auth/login', 404],
      ['/api/v1/auth/LOGIN', 404],
      ['/api/v1/Auth/login', 404],
      ['/API/v1/auth/login', 404],
      ['/api/v1/auth/%6Cogin', 404],
      ['/api/v1/auth/%6cogin', 404],
      ['/api/v1/%61uth/login', 404],
      ['/%61pi/v1/auth/login', 404],
      ['/api/v1/auth%2Flogin', 404],
      ['/api/v1/auth%2flogin', 404],
      ['/api/v1\\auth\\login', 404],
    ] as const)
      expect([odd, await post(api.url, odd, right)]).toEqual([odd, status])
  })
})
