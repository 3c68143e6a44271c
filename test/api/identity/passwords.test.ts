import { expect, test } from 'vitest'
import { createPasswords } from '../../../api/identity/passwords.ts'
import { startApiWithServicePasswords } from '../../support/api.ts'
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

test('the service stores passwords as bcrypt hashes of cost 12', async () => {
  const api = await startApiWithServicePasswords()
  await api.post('/auth/signup', { email: 'new@example.com', password: 'a password of ours' })
  const [user] = await api.sql<{ passwordHash: string }[]>`select password_hash from users`
  expect(user?.passwordHash).toMatch(/^\$2b\$12\$/)
})
