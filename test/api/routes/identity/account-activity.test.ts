/** The activity of an account: audit entries, merged with the starts and ends of its relays. */
import { describe, expect, test } from 'vitest'
import { type GivenUser, startApi, statusAndCode } from '../../../support/api.ts'

const api = await startApi()

interface Page {
  readonly entries: readonly {
    readonly id: string
    readonly at: string
    readonly actor: string
    readonly action: string
    readonly ip: string | null
    readonly detail: Readonly<Record<string, unknown>>
  }[]
  readonly next_cursor: string | null
}

const list = ({ bearer }: Pick<GivenUser, 'bearer'>, query = '') => api.get<Page>(`/auth/activity${query}`, { bearer })
const actionsOf = async (user: GivenUser, query = '') =>
  (await list(user, query)).body.entries.map(({ action }) => action)
const addEntries = (userId: string, action: string, count = 1) => api.sql`
  insert into audit_entries (initiator, action, user_id, at)
  select 'user', ${action}, ${userId}, now() from generate_series(1, ${count}::int)`

/** An ended session: it lost contact and did not come back. */
async function addEndedSession(userId: string, minutesAgo: number): Promise<string> {
  const [row] = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, created_at)
    values (${userId}, 'main', 'local', 'user', now() - make_interval(mins => ${minutesAgo})) returning id`
  const id = row?.id ?? ''
  const steps = [
    ['provisioning', 'active', 'relay_ready', 'relay'],
    ['active', 'grace', 'health_lost', 'system'],
    ['grace', 'stopped', 'grace_elapsed', 'timer'],
  ] as const
  for (const [index, [from, to, reason, initiator]] of steps.entries()) {
    await api.sql`
      insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
      values (${id}, ${index + 1}, ${from}, ${to}, ${reason}, ${initiator})`
    await api.sql`
      update relay_sessions set state = ${to}, reason = ${reason}, version = ${index + 1},
        grace_ends_at = ${to === 'grace' ? api.sql`now()` : null},
        stopped_at = ${to === 'stopped' ? api.sql`created_at + interval '1 minute'` : null}
      where id = ${id}`
  }
  return id
}

describe('the activity of an account', () => {
  test('contains the start and the end of a relay with the reason, between the audit entries of that time', async () => {
    const user = await api.given.user()
    await api.sql`update audit_entries set at = now() - interval '1 hour' where user_id = ${user.userId}`
    const id = await addEndedSession(user.userId, 30)
    await addEntries(user.userId, 'password_changed')
    const { entries, next_cursor } = (await list(user)).body
    const common = { session_id: id, connection_id: 'main', region: 'local' }
    expect(entries).toMatchObject([
      { action: 'password_changed' },
      {
        action: 'relay_stopped',
        actor: 'system',
        ip: null,
        detail: {
          ...common,
          reason: 'grace_elapsed',
          initiator: 'timer',
          cause_reason: 'health_lost',
          cause_initiator: 'system',
          provisioning_detail: null,
        },
      },
      { action: 'relay_started', actor: 'user', detail: common },
      { action: 'signed_in', ip: '192.0.2.1' },
    ])
    expect(next_cursor).toBeNull()
  })

  test('contains nothing of other accounts, and requires a sign-in', async () => {
    const [user, other] = [await api.given.user(), await api.given.user()]
    await addEndedSession(other.userId, 5)
    expect(await actionsOf(user)).toEqual(['signed_in'])
    expect((await list({ bearer: '' })).status).toBe(401)
  })

  test('hides the reasons of operators', async () => {
    const user = await api.given.user()
    await api.sql`
      insert into audit_entries (initiator, action, user_id, ip, detail)
      values ('operator', 'session_disconnected', ${user.userId}, '203.0.113.5', '{"session_id":"s","reason":"a suspect"}')`
    expect((await list(user)).body.entries[0]).toMatchObject({
      actor: 'operator',
      ip: null,
      detail: { session_id: 's' },
    })
    expect(JSON.stringify((await list(user)).body)).not.toContain('suspect')
  })

  test.each([
    ['sign_in', ['sign_in_failed', 'signed_in']],
    ['security', ['an_action_of_a_newer_version', 'email_changed']],
    ['plan', ['plan_changed']],
    ['relays', ['session_disconnected', 'relay_stopped', 'relay_started']],
  ])('is filtered by the group %s', async (group, actions) => {
    const user = await api.given.user()
    await addEndedSession(user.userId, 30)
    for (const action of [
      'email_changed',
      'sign_in_failed',
      'plan_changed',
      'session_disconnected',
      'an_action_of_a_newer_version',
    ])
      await addEntries(user.userId, action)
    expect(await actionsOf(user, `?group=${group}`)).toEqual(actions)
    const audit = await api.get<Page>(`/auth/audit?group=${group}`, { bearer: user.bearer })
    expect(audit.body.entries.map(({ action }) => action)).toEqual(
      actions.filter((action) => !action.startsWith('relay_')),
    )
  })

  test('is paged with each entry once, also of the same time, while entries are added', async () => {
    const user = await api.given.user()
    await addEntries(user.userId, 'did_something', 60)
    for (let minute = 1; minute <= 30; minute += 1) await addEndedSession(user.userId, minute)
    const pages: Page[] = []
    for (let cursor: string | null = ''; cursor !== null && pages.length < 9; ) {
      const { body }: { body: Page } = await list(user, cursor ? `?cursor=${cursor}` : '')
      pages.push(body)
      cursor = body.next_cursor
      await addEntries(user.userId, 'did_something')
    }
    expect(pages.map(({ entries }) => entries.length)).toEqual([50, 50, 21])
    const entries = pages.flatMap((page) => page.entries)
    expect(new Set(entries.map(({ id }) => id)).size).toBe(121)
    const times = entries.map(({ at }) => Date.parse(at))
    expect(times).toEqual(times.toSorted((a, b) => b - a))
  })

  test.each([
    'cursor=',
    'cursor=1',
    'cursor=x_audit-1',
    `cursor=${'9'.repeat(18)}_audit-${'0'.repeat(19)}`,
    'group=',
    'group=all',
  ])('with %s is a bad request', async (query) => {
    const user = await api.given.user()
    expect(statusAndCode(await list(user, `?${query}`))).toEqual([400, 'invalid_request'])
  })

  test('with a cursor of any time is a page', async () => {
    const user = await api.given.user()
    const at = (micros: string) => list(user, `?cursor=${micros}_audit-${'0'.repeat(19)}`)
    expect((await at('0')).body).toEqual({ entries: [], next_cursor: null })
    expect((await at('9'.repeat(17))).body.entries).toHaveLength(1)
  })
})
