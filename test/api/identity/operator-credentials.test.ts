/** Guessing the operator password, one after the other, at once, at several processes, and from many addresses. */
import { beforeEach, describe, expect, test } from 'vitest'
import { createAuthenticate } from '../../../api/admission/authentication.ts'
import type { Refusal } from '../../../api/http/refusals.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'

const operatorPassword = 'an operator of these tests'
const basic = (password: string) => ({
  Authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`,
})
const start = (limits: Readonly<Record<string, number>>, variables: Readonly<Record<string, string>> = {}) =>
  startApi({ SVC_OPERATOR_PASSWORD: operatorPassword, SVC_RATE_LIMITS: highLimits(limits), ...variables })

/** The status that one guess is answered with. */
const guess = async (at: TestApi, password: string, ip: string) =>
  (await at.get('/admin/sessions', { headers: basic(password), ip })).status
const times = (count: number) => Array.from({ length: count }, (_, n) => n)
const count = (statuses: readonly number[], status: number) => statuses.filter((answered) => answered === status).length

let addresses = 0
const freshAddress = () => `192.0.2.${++addresses}`

describe('from one address', async () => {
  const api = await start({ operator: 5 })
  const replica = await start({ operator: 5 }, { DATABASE_URL: api.services.config.database.url })

  test('fifty concurrent requests with the right password all succeed', async () => {
    const ip = freshAddress()
    const statuses = await Promise.all(times(50).map(() => guess(api, operatorPassword, ip)))
    expect(statuses).toEqual(times(50).map(() => 200))
    expect(await guess(api, 'wrong', ip)).toBe(401)
  })

  test.each([200, 500])('the right password is refused after %i wrong ones in a burst', async (wrong) => {
    const ip = freshAddress()
    const guesses = times(wrong).map((n) => guess(api, `guess ${n}`, ip))
    const statuses = await Promise.all([...guesses, guess(api, operatorPassword, ip)])
    expect([count(statuses, 401), count(statuses, 200), count(statuses, 429)]).toEqual([5, 0, wrong - 4])
    expect(await guess(api, operatorPassword, ip)).toBe(429)
    expect(await guess(api, operatorPassword, freshAddress())).toBe(200)
  })

  test('any number of right passwords pass among fewer wrong ones than the limit, and none after the limit', async () => {
    const ip = freshAddress()
    const mixed = times(60).map((n) => guess(api, n % 15 === 0 ? `guess ${n}` : operatorPassword, ip))
    const statuses = await Promise.all(mixed)
    expect([count(statuses, 401), count(statuses, 200)]).toEqual([4, 56])
    expect(await guess(api, 'the fifth', ip)).toBe(401)
    const behind = await Promise.all(times(55).map(() => guess(api, operatorPassword, ip)))
    expect(behind).toEqual(times(55).map(() => 429))
  })

  test.each([
    ['five wrong and fifty-five right ones', 5, 55],
    ['two hundred wrong ones and a right one', 200, 1],
  ])(
    'of %s in one burst, every guess after the fifth wrong one is refused without revealing its result',
    async (_, wrong, right) => {
      const authenticate = createAuthenticate(api.services)
      const ip = freshAddress()
      const passwords = [...times(wrong).map((n) => `guess ${n}`), ...times(right).map(() => operatorPassword)]
      const guesses = passwords.map((password) => {
        const header = (name: string) => (name === 'authorization' ? basic(password).Authorization : undefined)
        return authenticate('operator', { ip, header }).catch((refusal: Refusal) => refusal.code)
      })
      expect(await Promise.all(guesses)).toEqual([
        ...times(5).map(() => 'invalid_operator'),
        ...times(wrong + right - 5).map(() => 'rate_limited'),
      ])
    },
  )

  test('two processes answer no more wrong guesses than one', async () => {
    const ip = freshAddress()
    const statuses = await Promise.all(times(80).map((n) => guess(n % 2 ? api : replica, `guess ${n}`, ip)))
    expect([count(statuses, 401), count(statuses, 429)]).toEqual([5, 75])
    for (const at of [api, replica]) expect(await guess(at, operatorPassword, ip)).toBe(429)
  })

  test('a request without a password does not count as a guess', async () => {
    const ip = freshAddress()
    for (const _ of times(7)) expect((await api.get('/admin/sessions', { ip })).status).toBe(401)
    expect(await guess(api, operatorPassword, ip)).toBe(200)
  })
})

describe('from many addresses', async () => {
  const address = (n: number) => `198.51.100.${n}`
  const api = await start({ operator: 5, operator_failures: 12 })
  beforeEach(async () => {
    await api.sql`delete from rate_limit_windows`
    await api.sql`delete from operator_networks`
  })

  test('wrong guesses share one budget, which blocks operators only in new networks', async () => {
    const known = freshAddress()
    expect(await guess(api, operatorPassword, known)).toBe(200)
    const statuses = await Promise.all(times(100).map((n) => guess(api, `guess ${n}`, address(n))))
    expect([count(statuses, 401), count(statuses, 429)]).toEqual([12, 88])
    expect(await guess(api, operatorPassword, address(200))).toBe(429)
    expect(await guess(api, operatorPassword, known)).toBe(200)
    expect(await guess(api, 'wrong', known)).toBe(401)
    await api.sql`update rate_limit_windows set opened_at = opened_at - interval '1 minute'`
    expect(await guess(api, operatorPassword, address(200))).toBe(200)
  })

  test('one address alone cannot use up the shared budget', async () => {
    await Promise.all(times(60).map((n) => guess(api, `guess ${n}`, address(1))))
    expect(await guess(api, operatorPassword, address(2))).toBe(200)
  })

  test('a network is known for 30 days after an operator last used it', async () => {
    const known = freshAddress()
    const passTime = (days: number) =>
      api.sql`update operator_networks set last_used_at = last_used_at - make_interval(days => ${days})`
    expect(await guess(api, operatorPassword, known)).toBe(200)
    await passTime(29)
    expect(await guess(api, operatorPassword, known)).toBe(200)
    await passTime(29)
    await Promise.all(times(12).map((n) => guess(api, `guess ${n}`, address(n))))
    expect(await guess(api, operatorPassword, known)).toBe(200)
    await passTime(31)
    expect(await guess(api, operatorPassword, known)).toBe(429)
  })
})
