/** The audit trail: what owners and operators read of it. */
import { describe, expect, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode } from '../../../support/api.ts'

const operatorPassword = 'an operator of these tests'
const operator = { Authorization: `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}` }
const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })

interface Page {
  readonly entries: readonly {
    readonly id: string
    readonly at: string
    readonly actor: string
    readonly action: string
    readonly user_id?: string
    readonly ip: string | null
    readonly client: string | null
    readonly client_kind: string | null
    readonly detail: Readonly<Record<string, unknown>>
  }[]
  readonly next_cursor: string | null
}

const own = ({ bearer }: Pick<GivenUser, 'bearer'>, query = '') => api.get<Page>(`/auth/audit${query}`, { bearer })
const all = (query = '') => api.get<Page>(`/admin/audit${query}`, { headers: operator })
const addEntries = (userId: string, count: number) => api.sql`
  insert into audit_entries (initiator, action, user_id, detail)
  select 'user', 'did_something', ${userId}, jsonb_build_object('n', n) from generate_series(1, ${count}::int) n`

describe('the audit trail of an account', () => {
  test('lists actions to the owner, newest first', async () => {
    const user = await api.given.user()
    await api.post('/auth/login', { email: user.email, password: 'not the password' }, { ip: '198.51.100.9' })
    const { status, body } = await own(user)
    expect(status).toBe(200)
    expect(body).toEqual({
      entries: [
        {
          id: expect.stringMatching(/^\d+$/),
          at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
          actor: 'user',
          action: 'sign_in_failed',
          ip: '198.51.100.9',
          client: 'web',
          client_kind: 'web',
          detail: {},
        },
        expect.objectContaining({ action: 'signed_in', ip: '192.0.2.1' }),
      ],
      next_cursor: null,
    })
  })

  test('contains no entries of other accounts and is readable only by its owner', async () => {
    const [user, other] = [await api.given.user(), await api.given.user()]
    await addEntries(other.userId, 3)
    expect((await own(user)).body.entries.map((entry) => entry.action)).toEqual(['signed_in'])
    expect((await own({ bearer: '' })).status).toBe(401)
  })

  test('shows actions of operators without their address and internal reasons', async () => {
    const user = await api.given.user()
    await api.post(`/admin/users/${user.userId}/relay-access`, { enabled: true }, { headers: operator })
    await api.sql`
      insert into audit_entries (initiator, action, user_id, ip, detail)
      values ('operator', 'session_disconnected', ${user.userId}, '203.0.113.5', '{"session_id":"s","reason":"a suspect"}')`
    expect((await own(user)).body.entries.slice(0, 2)).toMatchObject([
      { actor: 'operator', action: 'session_disconnected', ip: null, detail: { session_id: 's' } },
      { actor: 'operator', action: 'relay_access_enabled', ip: null, detail: {} },
    ])
    expect(JSON.stringify((await own(user)).body)).not.toContain('suspect')
    expect((await all(`?user_id=${user.userId}`)).body.entries[0]).toMatchObject({
      actor: 'operator',
      user_id: user.userId,
      ip: '203.0.113.5',
      detail: { reason: 'a suspect' },
    })
  })

  test.each([
    ['its owner', (user: GivenUser, query: string) => own(user, `?${query}`)],
    ['operators', (user: GivenUser, query: string) => all(`?user_id=${user.userId}&${query}`)],
  ])('is paged by %s with each entry once', async (_, read) => {
    const user = await api.given.user()
    await addEntries(user.userId, 120)
    const pages: Page[] = []
    for (let cursor: string | null = ''; cursor !== null && pages.length < 9; ) {
      const { body }: { body: Page } = await read(user, cursor ? `cursor=${cursor}` : '')
      pages.push(body)
      cursor = body.next_cursor
      // What is added meanwhile stands before the first page.
      await addEntries(user.userId, 1)
    }
    expect(pages.map((page) => page.entries.length)).toEqual([50, 50, 21])
    const ids = pages.flatMap((page) => page.entries.map((entry) => BigInt(entry.id)))
    expect(new Set(ids).size).toBe(121)
    expect(ids).toEqual(ids.toSorted((a, b) => (a < b ? 1 : -1)))
  })
})

test('operators see all entries, with the account of each and those without one', async () => {
  const user = await api.given.user()
  await api.post('/auth/login', { email: 'nobody@example.com', password: 'x' })
  expect((await all()).body.entries.slice(0, 2)).toMatchObject([
    { action: 'sign_in_failed', user_id: null },
    { action: 'signed_in', user_id: user.userId },
  ])
})

test.each(['', 'x', '-1', '1.5', '1e3', '٣', '9'.repeat(19), '0x1', '%00'])(
  'the cursor “%s” is a bad request',
  async (cursor) => {
    const user = await api.given.user()
    expect(statusAndCode(await own(user, `?cursor=${cursor}`))).toEqual([400, 'invalid_request'])
    expect(statusAndCode(await all(`?cursor=${cursor}`))).toEqual([400, 'invalid_request'])
  },
)

test('a cursor works even if its entry was deleted', async () => {
  const user = await api.given.user()
  expect((await own(user, '?cursor=0')).body).toEqual({ entries: [], next_cursor: null })
  expect((await own(user, `?cursor=${'9'.repeat(18)}`)).body.entries).toHaveLength(1)
})

describe('repeated attempts of unauthenticated callers', () => {
  const network = (n: number) => `198.51.100.${n}`
  const forgot = (email: string, ip: string) => api.post('/auth/password/forgot', { email }, { ip })
  const rowsOf = async (action: string) => (await api.sql`select from audit_entries where action = ${action}`).length

  test('add only a few counting entries to the owner’s list', async () => {
    const user = await api.given.user()
    await addEntries(user.userId, 5)
    await Promise.all(Array.from({ length: 120 }, (_, n) => forgot(user.email, network(n % 60))))
    for (const n of [1, 2, 3, 4, 5, 5])
      await api.post('/auth/login', { ...user, password: 'a guess' }, { ip: network(n) })
    for (const n of [1, 1, 1])
      await api.post('/auth/signup', { ...user, password: 'a password of mine' }, { ip: network(n) })
    const { entries } = (await own(user)).body
    expect(entries.filter((entry) => entry.action === 'did_something')).toHaveLength(5)
    const timesOf = (action: string) =>
      entries.filter((entry) => entry.action === action).map((entry) => Number(entry.detail.times ?? 1))
    const sum = (counts: readonly number[]) => counts.reduce((a, b) => a + b, 0)
    for (const [action, times] of [
      ['password_reset_requested', 120],
      ['sign_in_failed', 6],
    ] as const) {
      expect(sum(timesOf(action))).toBe(times)
      expect(timesOf(action)).toHaveLength(3)
    }
    expect(entries.filter((entry) => entry.action === 'signup_refused')).toMatchObject([
      { ip: network(1), client: 'web', detail: { times: 3, last_at: expect.stringMatching(/Z$/) } },
    ])
    expect(entries.find((entry) => entry.ip === null)?.detail).toMatchObject({ several_addresses: true })
  })

  test('for addresses without an account are counted in a few entries, regardless of the number of addresses', async () => {
    const [before, resets] = [await rowsOf('sign_in_failed'), await rowsOf('password_reset_requested')]
    await Promise.all(
      Array.from({ length: 150 }, (_, n) => forgot(`nobody${n}@example.com`, `2001:db8:${n.toString(16)}::1`)),
    )
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        api.post('/auth/login', { email: `nobody${n}@example.com`, password: 'x' }, { ip: network(n) }),
      ),
    )
    expect((await rowsOf('password_reset_requested')) - resets).toBeLessThanOrEqual(20)
    expect((await rowsOf('sign_in_failed')) - before).toBeLessThanOrEqual(20)
  })

  test('start a new entry each day', async () => {
    const user = await api.given.user()
    await forgot(user.email, network(1))
    await api.sql`
      update audit_entries set at = at - interval '1 day', attempt_group = replace(attempt_group, ':', ':yesterday:')
      where user_id = ${user.userId} and attempts is not null`
    await forgot(user.email, network(1))
    const requests = (await own(user)).body.entries.filter((entry) => entry.action === 'password_reset_requested')
    expect(requests.map((entry) => entry.detail)).toEqual([{}, {}])
  })

  test('with wrong operator passwords are listed for operators by address, without an account', async () => {
    const wrong = { Authorization: `Basic ${Buffer.from('operator:a wrong guess').toString('base64')}` }
    for (let round = 0; round < 60; round += 1)
      await api.get('/admin/sessions', { headers: wrong, ip: network(Math.floor(round / 2)) })
    const failures = (await all()).body.entries.filter((entry) => entry.action === 'operator_sign_in_failed')
    expect(failures).toHaveLength(20)
    expect(failures).toContainEqual(
      expect.objectContaining({
        actor: 'operator',
        user_id: null,
        ip: network(0),
        client: null,
        detail: { times: 2, last_at: expect.any(String) },
      }),
    )
  })

  test('without an operator password add no entry', async () => {
    const before = await rowsOf('operator_sign_in_failed')
    expect((await api.get('/admin/sessions', { ip: '203.0.113.77' })).status).toBe(401)
    expect(await rowsOf('operator_sign_in_failed')).toBe(before)
  })
})

test('operators filter the audit by action, by initiator, and page through the result', async () => {
  const user = await api.given.user()
  await addEntries(user.userId, 60)
  const first = await all(`?user_id=${user.userId}&action=did_something&initiator=user`)
  expect(first.body.entries).toHaveLength(50)
  const second = await all(
    `?user_id=${user.userId}&action=did_something&initiator=user&cursor=${first.body.next_cursor}`,
  )
  expect([second.body.entries.length, second.body.next_cursor]).toEqual([10, null])
  expect((await all(`?user_id=${user.userId}&action=did_nothing`)).body.entries).toEqual([])
  expect((await all(`?user_id=${user.userId}&initiator=operator`)).body.entries).toEqual([])
  for (const query of ['?action=Not%20an%20action', '?initiator=nobody'])
    expect(statusAndCode(await all(query))).toEqual([400, 'invalid_request'])
})
