import { describe, expect, test } from 'vitest'
import { createPasswords } from '../../../api/identity/passwords.ts'
import { startApi, startApiWithServicePasswords } from '../../support/api.ts'
import { eventually } from '../../support/relays.ts'

test.each([
  ['a /48 of IPv6', (n: number) => `2001:db8:7:${n.toString(16)}::1`],
  ['a /24 of IPv4', (n: number) => `198.51.100.${n}`],
])(
  'while %s sends more sign-ins than the queue can hold, users in other networks can sign in and sign up',
  async (_, address) => {
    const api = await startApiWithServicePasswords()
    Object.assign(api.services.passwords, createPasswords({ runningMax: 1, waitingMax: 6 }))
    const user = await api.given.user()
    const statuses: number[] = []
    const count = (status: number) => statuses.filter((one) => one === status).length
    const flood = Array.from({ length: 20 }, async (_, n) => {
      const typed = { email: `nobody${n}@example.com`, password: 'a guess' }
      statuses.push((await api.post('/auth/login', typed, { ip: address(n) })).status)
    })
    // One runs, six wait.
    await eventually(
      async () => count(503),
      (refused) => refused === 13,
    )
    const { email, password } = user
    const answers = await Promise.all([
      api.post('/auth/login', { email, password }, { ip: '203.0.113.1' }),
      api.post('/auth/signup', { email: 'new@example.com', password: 'a password of ours' }, { ip: '2001:db8:8::1' }),
    ])
    expect(answers.map((answer) => answer.status)).toEqual([200, 201])
    // In turns with the flood, not behind it.
    expect(count(401)).toBeLessThan(5)
    await Promise.all(flood)
    expect([count(401), count(503)]).toEqual([5, 15])
  },
)

describe('sign-ins that wait for a slow hash', () => {
  /** One hash takes two seconds, so nothing else begins while a test looks at what waits. */
  const slowCost = 15
  const guess = (n: number) => ({ email: `nobody${n}@example.com`, password: 'a guess' })

  const startSlowApi = async (waitSecondsMax: number) => {
    const api = await startApi()
    const passwords = createPasswords({ cost: slowCost, runningMax: 1, waitingMax: 4, waitSecondsMax })
    Object.assign(api.services.passwords, passwords)
    /** The statuses with which the API has completed sign-ins, whether or not the client was still there. */
    const completed = () =>
      api.logged
        .map((line) => JSON.parse(line) as { msg: string; route?: string; status?: number })
        .filter(({ msg, route }) => msg === 'request completed' && route === '/api/v1/auth/login')
        .map(({ status }) => status)
    return { api, completed }
  }

  test('leave the queue when their clients give up, and make room for others', async () => {
    const { api, completed } = await startSlowApi(60)
    const controller = new AbortController()
    const { signal } = controller
    const abandoned = Array.from({ length: 8 }, (_, n) => api.post('/auth/login', guess(n), { signal }))
    const outcome = Promise.allSettled(abandoned)
    // One runs, four wait.
    await eventually(
      async () => completed(),
      (statuses) => statuses.length === 3,
    )
    controller.abort()
    await eventually(
      async () => completed(),
      (statuses) => statuses.length >= 7,
    )
    expect(completed()).not.toContain(200)
    expect(completed().filter((status) => status === 503)).toHaveLength(7)
    const { email, password } = await api.given.user()
    expect((await api.post('/auth/login', { email, password })).status).toBe(200)
    // A request is logged after its reply, and the guess that ran has its failure counted after its hash: the order may differ.
    const statuses = await eventually(
      async () => completed(),
      ({ length }) => length === 9,
    )
    expect(statuses.toSorted()).toEqual([200, 401, ...Array(7).fill(503)])
    await outcome
  })

  test('are refused with 503 when they have waited too long, and do not count as failed', async () => {
    const { api } = await startSlowApi(0.1)
    const typed = Array.from({ length: 3 }, (_, n) => guess(n))
    const answers = await Promise.all(typed.map((body) => api.post('/auth/login', body)))
    const refused = answers.filter(({ status }) => status === 503)
    expect(refused.map(({ body }) => body.error?.code)).toEqual(Array(2).fill('temporarily_unavailable'))
    for (const { headers } of refused) expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(1)
    const [counted] = await api.sql<{ failures: number }[]>`
      select coalesce(sum(requests), 0)::int as failures from rate_limit_windows where key like 'login_failures%'`
    expect(counted?.failures).toBe(1)
  })
})

test('the service stores passwords as bcrypt hashes of cost 12', async () => {
  const api = await startApiWithServicePasswords()
  await api.post('/auth/signup', { email: 'new@example.com', password: 'a password of ours' })
  const [user] = await api.sql<{ passwordHash: string }[]>`select password_hash from users`
  expect(user?.passwordHash).toMatch(/^\$2b\$12\$/)
})
