/** The copy of the data that is stored about a person. */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { exportedTables, unexportedTables } from '../../../../db/identity/account-export.ts'
import { packPoint } from '../../../../domain/relay/stream-record.ts'
import { type GivenUser, startApi, statusAndCode, streamTokenOf } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { operator, operatorPassword } from '../../../support/relays.ts'

const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword, SVC_RATE_LIMITS: highLimits({}) })
const { sql } = api

interface AccountExport {
  readonly user_id: string
  readonly exported_at: string
  readonly tables: Readonly<Record<string, readonly Record<string, unknown>[]>>
}

const exportOwn = ({ bearer }: GivenUser) => api.get<AccountExport>('/auth/account/export', { bearer })
const exportUser = ({ userId }: Pick<GivenUser, 'userId'>) =>
  api.get<AccountExport>(`/admin/users/${userId}/export`, { headers: operator, ip: '198.51.100.77' })

/** Adds a row of the account to every table. Values that must not be exported contain `hidden`. */
async function fillTables({ userId, authSessionId }: GivenUser): Promise<void> {
  const hash = sql`sha256(gen_random_uuid()::text::bytea)`
  const later = sql`now() + interval '1 hour'`
  await sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id, access_token_sealed, chat_connected_at)
    values (${userId}, 'twitch', ${userId}, 'hidden', now())`
  await sql`insert into terms_acceptances (user_id, version) values (${userId}, '2026-06-19')`
  await sql`
    insert into app_grants (user_id, client_id, scopes, ip, user_agent, expires_at)
    values (${userId}, 'app', '{ingests:read}', '192.0.2.1', 'browser', ${later})`
  await sql`
    insert into app_requests (id_hash, client_id, scopes, payload_sealed, ip, user_agent, user_id, decision, expires_at)
    values (${hash}, 'app', '{ingests:read}', 'hidden', '192.0.2.1', 'browser', ${userId}, 'approved', ${later})`
  await sql`
    insert into login_attempts (poll_token_hash, user_code, client_name, ip, status, user_id, expires_at)
    values (${hash}, 'hidden', 'plugin', '192.0.2.1', 'consumed', ${userId}, ${later})`
  await sql`
    insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
    values (${hash}, ${userId}, 'verify_email', 'a@example.com', ${later})`
  await sql`
    insert into merge_requests (user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
    values (${userId}, 'a@example.com', 'google', 'g', ${hash}, ${later})`
  await sql`
    insert into oauth_authorization_requests (state_hash, binding_hash, provider, intent, scopes, user_id, auth_session_id, expires_at)
    values (${hash}, ${hash}, 'twitch', 'link', 'identity', ${userId}, ${authSessionId}, ${later})`
  await sql`
    insert into provider_token_revocations (provider, provider_user_id, user_id, field, token_sealed)
    values ('twitch', 't', ${userId}, 'access_token', 'hidden')`
  await sql`insert into notification_settings (user_id, kind, channel) values (${userId}, 'usage_80', 'email')`
  await sql`
    insert into notification_endpoints (user_id, type, url_sealed) values (${userId}, 'discord', 'hidden')`
  await sql`
    insert into outbox_messages (user_id, channel, kind, content) values (${userId}, 'email', 'usage_80', 'hidden')`
  await sql`
    insert into audit_entries (initiator, action, user_id, ip, detail)
    values ('operator', 'account_disabled', ${userId}, '203.0.113.250', '{"reason":"hidden","times":2}')`
  await sql`
    insert into withdrawals (user_id, provider, subscription_id, kind, quantity, purchased_at, refund_error, refund_failed_at)
    values (${userId}, 'sandbox', ${`sub_of_${userId}`}, 'plan', 1, now(), 'hidden', now())`
  const subscription = `sub_${userId}`
  await sql`
    insert into subscriptions (provider, subscription_id, kind, user_id, status)
    values ('stripe', ${subscription}, 'plan', ${userId}, 'ended')`
  await sql`
    insert into billing_customers (provider, subscription_id, customer_id) values ('stripe', ${subscription}, 'cus_1')`
  await sql`
    insert into billing_events (provider, event_key, type, user_ref, user_id, body, status)
    values ('stripe', ${userId}, 'x', ${userId}, ${userId}, 'name and address', 'ignored')`
  await sql`
    insert into sandbox_subscriptions (id, user_id, kind, quantity, status)
    values (${subscription}, ${userId}, 'plan', 1, 'ended')`
  const [session] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
      operator_request)
    values (${userId}, 'cam', 'local', 'user', 'hidden', ${hash}, '{"ip":"203.0.113.250"}') returning id`
  const sessionId = session?.id ?? ''
  await sql`
    insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
    values (${sessionId}, 1, 'provisioning', 'active', 'relay_ready', 'relay')`
  const point = packPoint({ bitrateKbps: 4000, links: 2, lossTenths: 15, rttMs: null, players: 1 })
  await sql`
    insert into relay_health (session_id, instance_id, record_points, record_slot)
    values (${sessionId}, 'i-1', array[${point}, 0]::bigint[], 1)`
  await sql`
    insert into stream_records (session_id, began_at, points)
    values (${sessionId}, now(), pack_stream_points(array[0, ${point}]::bigint[]))`
  await sql`insert into share_links (session_id, user_id, token_hash) values (${sessionId}, ${userId}, ${hash})`
  await sql`insert into connections (user_id, name) values (${userId}, 'cam')`
  await sql`
    insert into slates (connection_label, user_id, digest, image)
    select label, user_id, ${'ab'.repeat(32)}, 'picture' from connections where user_id = ${userId}`
  await sql`
    insert into play_keys (user_id, kind, name, key_sealed, key_hash) values (${userId}, 'own', 'Studio', 'hidden', ${hash})`
  await sql`
    insert into relay_replacements (session_id, binding, instance_id, replaced_by, cause, failed_at, last_report_at)
    values (${sessionId}, 2, 'i-1', 'i-2', 'relay_gone', now(), now())`
  await sql`
    insert into stream_events (session_id, number, kind, at, bitrate_kbps)
    values (${sessionId}, 1, 'stream_started', now(), 4000)`
  await sql`
    insert into path_events (session_id, number, kind, at, links_from, links_to, instance_id, process_started_at_ms, seq)
    values (${sessionId}, 1, 'links_changed', now(), 3, 2, 'i-1', 1, 1)`
  await sql`insert into relay_commands (session_id, seq, command, initiator) values (${sessionId}, 2, 'stop', 'user')`
  await sql`
    insert into idempotency_keys (user_id, key, request_hash, session_id)
    values (${userId}, gen_random_uuid(), ${hash}, ${sessionId})`
  await sql`insert into usage_intervals (session_id, user_id, started_at) values (${sessionId}, ${userId}, now())`
  await sql`insert into usage_days (user_id, day, connection_id, seconds) values (${userId}, '2025-01-01', 'cam', 60.5)`
  await sql`insert into trials (user_id, address_hash) values (${userId}, ${randomBytes(32)})`
  await sql`insert into usage_notices (user_id, cycle_start, percent) values (${userId}, now(), 80)`
}

test('every column of a table with rows of an account is exported or left out for a reason', async () => {
  // Tables with a column that names an account or one of its rows, and all that reference such a table.
  const tables = await sql<{ name: string; columns: string[] }[]>`
    with recursive own (name) as (
      select distinct table_name::text from information_schema.columns
      where table_schema = 'public' and (table_name = 'users'
        or column_name in ('user_id', 'user_ref', 'session_id', 'auth_session_id', 'subscription_id', 'email'))
      union
      select k.conrelid::regclass::text from pg_constraint k join own on k.confrelid = own.name::regclass where k.contype = 'f')
    select name, array(select column_name::text from information_schema.columns c
      where c.table_schema = 'public' and c.table_name = name order by column_name) as columns
    from own order by name`
  expect(tables.map((table) => table.name)).toEqual(
    [...exportedTables.map(({ table }) => table), ...Object.keys(unexportedTables)].toSorted(),
  )
  for (const { table, columns, leftOut } of exportedTables) {
    const stored = tables.find(({ name }) => name === table)?.columns
    expect([table, [...columns, ...Object.keys(leftOut)].toSorted()]).toEqual([table, stored?.toSorted()])
  }
})

describe('an export', () => {
  test('contains the rows of every table, with all columns that are not left out', async () => {
    const user = await api.given.user()
    await fillTables(user)
    const { status, body, headers } = await exportOwn(user)
    expect([status, body.user_id]).toEqual([200, user.userId])
    expect(Object.keys(body.tables)).toEqual(exportedTables.map(({ table }) => table))
    for (const { table, columns } of exportedTables) {
      const rows = body.tables[table] ?? []
      expect([table, rows.length > 0]).toEqual([table, true])
      for (const row of rows) expect([table, Object.keys(row)]).toEqual([table, columns])
    }
    expect(body.tables.users).toMatchObject([{ id: user.userId, email: user.email }])
    expect(body.tables.usage_days).toMatchObject([{ day: '2025-01-01', connection_id: 'cam', seconds: 60.5 }])
    expect(body.tables.relay_health?.[0]?.record_points).toEqual({
      bitrate_kbps: [4000, null],
      links: [2, null],
      loss_pct: [1.5, null],
      rtt_ms: [null, null],
      players: [1, null],
    })
    expect(body.tables.stream_records).toMatchObject([{ points: { bitrate_kbps: [null, 4000], players: [null, 1] } }])
    const event = body.tables.billing_events?.[0]
    expect(Buffer.from(String(event?.body), 'base64').toString()).toBe('name and address')
    expect(headers.get('content-disposition')).toBe(`attachment; filename="account-${user.userId}.json"`)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('contains no secret, nothing of operators, and nothing of another account', async () => {
    const [user, other] = [await api.given.user(), await api.given.user()]
    await fillTables(user)
    await fillTables(other)
    for (const reply of [await exportOwn(user), await exportUser(user)]) {
      const text = JSON.stringify(reply.body)
      const hidden = ['hidden', '203.0.113.250', '198.51.100.77', other.userId, other.email]
      for (const secret of [...hidden, await streamTokenOf(api, user.userId), user.refreshToken, '$2b$'])
        expect([secret, text.includes(secret)]).toEqual([secret, false])
      const rows = await sql`
        select encode(stream_token_hash, 'hex') as hash from users where id = ${user.userId}
        union all select encode(token_hash, 'hex') from refresh_tokens where auth_session_id = ${user.authSessionId}
        union all select encode(token_hash, 'hex') from mail_tokens where user_id = ${user.userId}`
      expect(rows).toHaveLength(3)
      for (const { hash } of rows) expect(text).not.toContain(hash)
    }
  })

  test('by the owner requires a recent sign-in, with or without a password', async () => {
    const user = await api.given.user()
    await sql`update auth_sessions set created_at = now() - interval '9 minutes' where id = ${user.authSessionId}`
    expect((await exportOwn(user)).status).toBe(200)
    await sql`update auth_sessions set created_at = now() - interval '11 minutes' where id = ${user.authSessionId}`
    expect(statusAndCode(await exportOwn(user))).toEqual([403, 'recent_sign_in_required'])
    expect(statusAndCode(await api.get('/auth/account/export'))).toEqual([401, 'unauthorized'])
  })

  test('is audited, and contains its own entry', async () => {
    const user = await api.given.user()
    const own = await exportOwn(user)
    expect(own.body.tables.audit_entries).toContainEqual(
      expect.objectContaining({ initiator: 'user', action: 'account_exported' }),
    )
    expect((await exportUser(user)).status).toBe(200)
    const entries = await sql`
      select initiator, ip from audit_entries where user_id = ${user.userId} and action = 'account_exported' order by id`
    expect(entries).toMatchObject([{ initiator: 'user' }, { initiator: 'operator', ip: '198.51.100.77' }])
  })

  test('of an unknown account is not found', async () => {
    expect(statusAndCode(await exportUser({ userId: randomUUID() }))).toEqual([404, 'not_found'])
  })
})
