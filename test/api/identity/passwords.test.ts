/** The hashing of passwords: its cost, its queue, and what callers get while it is full. */
import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createPasswords } from '../../../api/identity/passwords.ts'
import { startApi, startApiWithServicePasswords, type TestApi } from '../../support/api.ts'
import { eventually } from '../../support/relays.ts'

/** Hashes that take as long as the test wants, so that it is known what runs and what waits while it looks. */
function createHeldHashing() {
  const held: (() => void)[] = []
  let isHeld = true
  const turn = () => new Promise<void>((resolve) => (isHeld ? held.push(resolve) : resolve()))
  const hashing = {
    hash: (text: string) => turn().then(() => `hash of ${text}`),
    compare: (text: string) => turn().then(() => text === 'correct horse battery'),
  }
  return {
    hashing,
    /** How many run. */
    count: () => held.length,
    completeOne: () => held.shift()?.(),
    completeAll: () => {
      isHeld = false
      for (const resolve of held.splice(0)) resolve()
    },
  }
}

interface Bounds {
  readonly runningMax: number
  readonly waitingMax: number
  readonly waitSecondsMax?: number
}

/** Replaces the passwords of the API until the end of the test. */
function holdPasswords(api: TestApi, bounds: Bounds) {
  const { hashing, ...control } = createHeldHashing()
  const before = { ...api.services.passwords }
  Object.assign(api.services.passwords, createPasswords(bounds, hashing))
  onTestFinished(() => {
    control.completeAll()
    Object.assign(api.services.passwords, before)
  })
  return control
}

const api = await startApi()
const guess = (n: number) => ({ email: `nobody${n}@example.com`, password: 'a guess' })

test.each([
  ['a /48 of IPv6', (n: number) => `2001:db8:7:${n.toString(16)}::1`],
  ['a /24 of IPv4', (n: number) => `198.51.100.${n}`],
])(
  'while %s sends more sign-ins than the queue can hold, users in other networks can sign in and sign up',
  async (_, address) => {
    const passwords = holdPasswords(api, { runningMax: 1, waitingMax: 6, waitSecondsMax: 600 })
    const { email, password } = await api.given.user()
    const statuses: number[] = []
    const count = (status: number) => statuses.filter((answered) => answered === status).length
    const flood = Array.from({ length: 20 }, async (_, n) => {
      statuses.push((await api.post('/auth/login', guess(n), { ip: address(n) })).status)
    })
    const refused = (expected: number) =>
      eventually(
        async () => count(503),
        (found) => found === expected,
      )
    // One runs, six wait.
    await refused(13)
    const answers = [
      api.post('/auth/login', { email, password }, { ip: '203.0.113.1' }),
      api.post(
        '/auth/signup',
        { email: `${randomUUID()}@example.com`, password: 'a password of ours' },
        { ip: '2001:db8:8::1' },
      ),
    ]
    // Each took the place of one of the flood.
    await refused(15)
    // The one that runs, and one of the flood beside the two others: in turns with the flood, not behind it.
    for (let turn = 0; turn < 4; turn += 1) {
      await eventually(passwords.count, (running) => running === 1)
      passwords.completeOne()
    }
    expect((await Promise.all(answers)).map((answer) => answer.status)).toEqual([200, 201])
    passwords.completeAll()
    await Promise.all(flood)
    expect([count(401), count(503)]).toEqual([5, 15])
  },
)

describe('sign-ins that wait for a hash', () => {
  test('leave the queue when their clients give up, and make room for others', async () => {
    const api = await startApi()
    const passwords = holdPasswords(api, { runningMax: 1, waitingMax: 4, waitSecondsMax: 600 })
    /** The statuses with which the API has completed sign-ins, whether or not the client was still there. */
    const completed = () =>
      api.logged
        .map((line) => JSON.parse(line) as { msg: string; route?: string; status?: number })
        .filter(({ msg, route }) => msg === 'request completed' && route === '/api/v1/auth/login')
        .map(({ status }) => status)
    const controller = new AbortController()
    const { signal } = controller
    const abandoned = Array.from({ length: 8 }, (_, n) => api.post('/auth/login', guess(n), { signal }))
    const outcome = Promise.allSettled(abandoned)
    // One runs, four wait.
    await eventually(completed, ({ length }) => length === 3)
    controller.abort()
    await eventually(completed, ({ length }) => length === 7)
    expect(completed()).toEqual(Array(7).fill(503))
    const { email, password } = await api.given.user()
    const signingIn = api.post('/auth/login', { email, password })
    passwords.completeAll()
    expect((await signingIn).status).toBe(200)
    // A request is logged after its reply, and the guess that ran has its failure counted after its hash: the order may
    // differ.
    const statuses = await eventually(completed, ({ length }) => length === 9)
    expect(statuses.toSorted()).toEqual([200, 401, ...Array(7).fill(503)])
    await outcome
  })

  test('are refused with 503 when they have waited too long, and do not count as failed', async () => {
    const passwords = holdPasswords(api, { runningMax: 1, waitingMax: 4, waitSecondsMax: 0.1 })
    await api.sql`delete from rate_limit_windows`
    const running = api.post('/auth/login', guess(0))
    await eventually(passwords.count, (count) => count === 1)
    const refused = await Promise.all([1, 2].map((n) => api.post('/auth/login', guess(n))))
    expect(refused.map(({ status, body }) => [status, body.error?.code])).toEqual(
      Array(2).fill([503, 'temporarily_unavailable']),
    )
    for (const { headers } of refused) expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
    passwords.completeAll()
    expect((await running).status).toBe(401)
    const [counted] = await api.sql<{ failures: number }[]>`
      select coalesce(sum(requests), 0)::int as failures from rate_limit_windows where key like 'login_failures%'`
    expect(counted?.failures).toBe(1)
  })
})

test('the service stores passwords as bcrypt hashes of cost 12', async () => {
  const service = await startApiWithServicePasswords()
  await service.post('/auth/signup', { email: 'new@example.com', password: 'a password of ours' })
  const [user] = await service.sql<{ passwordHash: string }[]>`select password_hash from users`
  expect(user?.passwordHash).toMatch(/^\$2b\$12\$/)
})
