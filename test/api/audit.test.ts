import { describe, expect, test } from 'vitest'
import { type GivenUser, outcome, startApi } from '../support/api.ts'

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
    readonly detail: object
  }[]
  readonly next_cursor: string | null
}

const own = ({ bearer }: Pick<GivenUser, 'bearer'>, query = '') => api.get<Page>(`/auth/audit${query}`, { bearer })
const all = (query = '') => api.get<Page>(`/admin/audit${query}`, { headers: operator })
const addEntries = (userId: string, count: number) => api.sql`
  insert into audit_entries (actor, action, user_id, detail)
  select 'user', 'did_something', ${userId}, jsonb_build_object('n', n) from generate_series(1, ${count}::int) n`

describe('the audit trail of an account', () => {
  test('tells its owner what happened, the newest first', async () => {
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
          detail: {},
        },
        expect.objectContaining({ action: 'signed_in', ip: '192.0.2.1' }),
      ],
      next_cursor: null,
    })
  })

  test('holds nothing of other accounts, and is nobody else’s to read', async () => {
    const [user, other] = [await api.given.user(), await api.given.user()]
    await addEntries(other.userId, 3)
    expect((await own(user)).body.entries.map((entry) => entry.action)).toEqual(['signed_in'])
    expect((await own({ bearer: '' })).status).toBe(401)
  })

  test('says what an operator did, but neither from where nor what they noted for themselves', async () => {
    const user = await api.given.user()
    await api.post(`/admin/users/${user.userId}/relay-access`, { enabled: true }, { headers: operator })
    await api.sql`
      insert into audit_entries (actor, action, user_id, ip, detail)
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
  ])('is turned by %s page by page, each entry once', async (_, read) => {
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
    expect(ids).toEqual(ids.toSorted((one, other) => (one < other ? 1 : -1)))
  })
})

test('operators see what concerns nobody’s account too, and every entry says whose it is', async () => {
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
    expect(outcome(await own(user, `?cursor=${cursor}`))).toEqual([400, 'invalid_request'])
    expect(outcome(await all(`?cursor=${cursor}`))).toEqual([400, 'invalid_request'])
  },
)

test('a cursor is an entry’s place, whether the entry is still there or not', async () => {
  const user = await api.given.user()
  expect((await own(user, '?cursor=0')).body).toEqual({ entries: [], next_cursor: null })
  expect((await own(user, `?cursor=${'9'.repeat(18)}`)).body.entries).toHaveLength(1)
})
