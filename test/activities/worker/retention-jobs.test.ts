/** The job that deletes rows after their retention period. */
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createWorkerMetrics } from '../../../activities/worker/metrics.ts'
import { retentionJobs } from '../../../activities/worker/retention-jobs.ts'
import { deleteBillingBodies, deleteExpired, retentionRules } from '../../../db/operations/retention.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { deleteExpiredRows, retentionDeps } from '../../support/retention.ts'

const api = await startApi()
const day = 86_400

/** Creates an account with a row of each kind that expired this many seconds ago. */
async function createExpiredRows(at: TestApi, secondsAgo: number): Promise<{ userId: string; authSessionId: string }> {
  const { sql } = at
  const { userId, authSessionId } = await at.given.user()
  const then = sql`now() - make_interval(secs => ${secondsAgo})`
  const hash = sql`sha256(gen_random_uuid()::text::bytea)`
  await sql`
    insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
    values (${hash}, ${userId}, 'verify_email', 'a@example.com', ${then})`
  await sql`
    insert into merge_requests (user_id, email, provider, provider_user_id, merge_token_hash, expires_at)
    values (${userId}, 'a@example.com', 'google', 'g', ${hash}, ${then})`
  await sql`
    insert into oauth_authorization_requests (state_hash, binding_hash, provider, intent, scopes, user_id, auth_session_id, expires_at)
    values (${hash}, ${hash}, 'twitch', 'link', 'identity', ${userId}, ${authSessionId}, ${then})`
  await sql`
    insert into oauth_authorization_requests (state_hash, binding_hash, provider, intent, scopes, merge_request_id, expires_at)
    select ${hash}, ${hash}, 'twitch', 'merge', 'identity', id, ${then} from merge_requests where user_id = ${userId}`
  await sql`
    insert into login_attempts (poll_token_hash, user_code, client_name, ip, status, user_id, expires_at)
    values (${hash}, 'ABCD-EFGH', 'plugin', '192.0.2.1', 'consumed', ${userId}, ${then})`
  await sql`
    insert into app_requests (id_hash, client_id, scopes, payload_sealed, ip, user_agent, expires_at)
    values (${hash}, 'obs-irl-source', '{}', '', '192.0.2.1', '', ${then})`
  // One that was ended, one that expired, and one in use with a code that expired and a token that was replaced.
  await sql`
    insert into app_grants (user_id, client_id, scopes, ip, user_agent, expires_at, ended_at, ended_for)
    values (${userId}, 'ended', '{}', '192.0.2.1', '', now() + interval '1 day', ${then}, 'signed_out'),
      (${userId}, 'expired', '{}', '192.0.2.1', '', ${then}, null, null),
      (${userId}, 'used', '{}', '192.0.2.1', '', now() + interval '1 day', null, null)`
  for (const [kind, consumed, expires] of [
    ['code', null, then],
    ['refresh', then, sql`now() + interval '1 day'`],
  ] as const)
    await sql`
      insert into app_tokens (token_hash, grant_id, kind, generation, payload, consumed_at, expires_at)
      select ${hash}, id, ${kind}, 0, '{}', ${consumed}, ${expires} from app_grants
      where user_id = ${userId} and client_id = 'used'`
  for (const status of ['open', 'active'])
    await sql`
      insert into sandbox_subscriptions (id, user_id, kind, quantity, status, created_at)
      values ('sub_' || gen_random_uuid(), ${userId}, 'plan', 1, ${status}, ${then})`
  await sql`
    insert into outbox_messages (user_id, channel, kind, created_at, next_attempt_at, sent_at)
    values (${userId}, 'email', 'ended', ${then}, null, ${then}), (${userId}, 'email', 'pending', ${then}, ${then}, null)`
  await sql`insert into usage_notices (user_id, cycle_start, percent, at) values (${userId}, ${then}, 80, ${then})`
  await sql`update refresh_tokens set expires_at = ${then} where auth_session_id = ${authSessionId}`
  await sql`update auth_sessions set revoked_at = ${then}, revoked_for = 'logout' where id = ${authSessionId}`
  await sql`
    insert into auth_sessions (user_id, client, ip, created_at, last_used_at)
    values (${userId}, 'unused', '192.0.2.1', ${then}, ${then})`
  await sql`update audit_entries set at = ${then} where user_id = ${userId}`
  await sql`insert into erased_accounts (user_id, erased_at) values (gen_random_uuid(), ${then})`
  await sql`
    insert into erased_account_subscriptions (provider, subscription_id, account_id, found_at, next_attempt_at)
    values ('stripe', ${userId}, ${userId}, ${then}, null), ('sandbox', ${userId}, ${userId}, ${then}, ${then})`
  await sql`
    insert into ended_workflows (workflow_id, workflow_type, first_run_id, last_run_id, last_ended_at)
    values (${userId}, 'relaySession', 'first', 'last', ${then})`
  await sql`insert into operator_networks (network, last_used_at) values (${userId}, ${then})`
  await sql`
    insert into operator_sessions (token_hash, password_hash, expires_at) values (${hash}, ${hash}, ${then})`
  await sql`
    insert into instances (instance_id, region, created_at, gone_at) values (${userId}, 'local', ${then}, ${then})`
  await sql`
    insert into billing_events (provider, event_key, type, user_ref, status, received_at)
    values ('stripe', ${userId}, 'x', ${userId}, 'ignored', ${then} - interval '10 years')`
  const [session] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, 'default', 'local', 'user') returning id`
  await sql`insert into relay_health (session_id, instance_id) values (${session?.id ?? ''}, ${userId})`
  await sql`
    insert into stream_records (session_id, began_at, points) values (${session?.id ?? ''}, ${then}, ''::bytea)`
  await sql`
    insert into share_links (session_id, user_id, token_hash, expires_at)
    values (${session?.id ?? ''}, ${userId}, ${hash}, ${then})`
  await sql`insert into trial_networks (network_hash, starts, last_at) values (${hash}, array[${then}], ${then})`
  await sql`insert into erased_trials (address_hash, erased_at) values (${hash}, ${then})`
  await sql`
    insert into withdrawals (provider, subscription_id, kind, quantity, purchased_at, refunded_at, refunded)
    values ('sandbox', ${userId}, 'plan', 1, ${then}, ${then} - interval '10 years', 'provider')`
  await sql`
    insert into incidents (part, kind, began_at, confirmed_at, ended_at) values ('api', 'part_outage', ${then}, ${then}, ${then})`
  await sql`
    insert into idempotency_keys (user_id, key, request_hash, session_id, accepted_at)
    values (${userId}, gen_random_uuid(), ${hash}, ${session?.id ?? ''}, ${then})`
  await sql`insert into sign_in_failures (minute, failures) values (${then}, 1) on conflict do nothing`
  return { userId, authSessionId }
}

/** The number of the account's rows of each kind. */
async function countRows(at: TestApi, { userId, authSessionId }: { userId: string; authSessionId: string }) {
  const [row] = await at.sql`
    select
      (select count(*)::int from mail_tokens where user_id = ${userId}) as mail_tokens,
      (select count(*)::int from oauth_authorization_requests where user_id = ${userId}) as authorization_requests,
      (select count(*)::int from merge_requests where user_id = ${userId}) as merge_requests,
      (select count(*)::int from login_attempts where user_id = ${userId}) as login_attempts,
      (select count(*)::int from sandbox_subscriptions where user_id = ${userId} and status = 'open') as checkouts,
      (select count(*)::int from sandbox_subscriptions where user_id = ${userId} and status = 'active') as bought,
      (select count(*)::int from outbox_messages where user_id = ${userId} and kind = 'ended') as ended_messages,
      (select count(*)::int from outbox_messages where user_id = ${userId} and kind = 'pending') as pending_messages,
      (select count(*)::int from usage_notices where user_id = ${userId}) as usage_notices,
      (select count(*)::int from operator_networks where network = ${userId}) as operator_networks,
      (select count(*)::int from refresh_tokens where auth_session_id = ${authSessionId}) as refresh_tokens,
      (select count(*)::int from auth_sessions where id = ${authSessionId}) as ended,
      (select count(*)::int from auth_sessions where user_id = ${userId} and client = 'unused') as unused,
      (select count(*)::int from audit_entries where user_id = ${userId}) as audit_entries`
  return row
}
const lasting = {
  mailTokens: 0,
  authorizationRequests: 0,
  mergeRequests: 0,
  loginAttempts: 0,
  checkouts: 0,
  bought: 1,
  refreshTokens: 0,
  operatorNetworks: 0,
  endedMessages: 0,
  pendingMessages: 1,
}
const all = {
  mailTokens: 1,
  authorizationRequests: 1,
  mergeRequests: 1,
  loginAttempts: 1,
  checkouts: 1,
  bought: 1,
  refreshTokens: 1,
  endedMessages: 1,
  pendingMessages: 1,
}

test.each([
  [
    'are kept before they expire',
    -60,
    { ...all, operatorNetworks: 1, ended: 1, unused: 1, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of mail links, plugin logins and merges are kept for a day',
    day - 60,
    { ...all, refreshTokens: 0, operatorNetworks: 1, ended: 1, unused: 1, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of sign-ins, operators, the audit, usage notices and purchases are kept after a day',
    day + 60,
    { ...lasting, endedMessages: 1, operatorNetworks: 1, ended: 1, unused: 1, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of ended sign-ins are kept for 90 days',
    90 * day - 60,
    { ...lasting, ended: 1, unused: 1, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of sign-ins that were not ended are kept for 90 days from the end of their last token',
    120 * day - 60,
    { ...lasting, ended: 0, unused: 1, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of the audit and of usage notices are kept for 400 days',
    400 * day - 60,
    { ...lasting, ended: 0, unused: 0, usageNotices: 1, auditEntries: 1 },
  ],
  [
    'of purchases are kept permanently',
    400 * day + 60,
    { ...lasting, ended: 0, unused: 0, usageNotices: 0, auditEntries: 0 },
  ],
])('expired rows %s', async (_, secondsAgo, kept) => {
  const account = await createExpiredRows(api, secondsAgo)
  await deleteExpiredRows(api)
  expect(await countRows(api, account)).toEqual(kept)
})

test.each([
  ['applied', 90 * day - 60, true],
  ['applied', 90 * day + 60, false],
  ['ignored', 90 * day + 60, false],
  ['pending', 400 * day, true],
  ['parked', 400 * day, true],
  ['dead', 400 * day, true],
  ['unresolved', 400 * day, true],
])(
  'the body of a billing event that has been %s for %i seconds is kept: %s; the normalised event always is',
  async (status, secondsAgo, isKept) => {
    const { userId } = await api.given.user()
    const then = api.sql`now() - make_interval(secs => ${secondsAgo})`
    const event = { key: status, at: 1 }
    await api.sql`
    insert into billing_events (provider, event_key, type, action, user_id, event, body, status, received_at, settled_at,
      next_attempt_at)
    values ('stripe', gen_random_uuid()::text, 'x', 'refund', ${userId}, ${api.sql.json(event)}, 'jane@example.com', ${status},
      ${then}, ${then}, ${then})`
    await deleteExpiredRows(api)
    const rows =
      await api.sql`select status, event, body is not null as "isKept" from billing_events where user_id = ${userId}`
    expect(rows).toEqual([{ status, event, isKept }])
  },
)

test('bodies of billing events are found by an index, and one statement deletes no more than its limit', async () => {
  const own = await startApi()
  const { userId } = await own.given.user()
  await own.sql`
    insert into billing_events (provider, event_key, type, user_id, body, status, settled_at)
    select 'stripe', n::text, 'x', ${userId}, 'x', 'ignored', now() - interval '91 days' from generate_series(1, 15) n`
  await own.sql.begin(async (tx) => {
    await tx`set local enable_seqscan = off`
    const sequentialScans = () => tx`select seq_scan from pg_stat_xact_user_tables where relname = 'billing_events'`
    const before = await sequentialScans()
    expect(await deleteBillingBodies(tx, own.services.config.retention, 10)).toBe(10)
    expect(await sequentialScans()).toEqual(before)
  })
  await deleteExpiredRows(own, 2)
  expect(await own.sql`select from billing_events where body is not null`).toHaveLength(0)
})

test('a sign-in in use is kept, however long ago it began', async () => {
  const user = await api.given.user()
  await api.sql`update auth_sessions set created_at = now() - interval '3 years' where id = ${user.authSessionId}`
  await deleteExpiredRows(api)
  expect((await api.get('/auth/session', { bearer: user.bearer })).status).toBe(200)
  expect((await api.post('/auth/refresh', { refresh_token: user.refreshToken })).status).toBe(200)
})

test('many expired rows are deleted in several statements of limited size', async () => {
  const { userId } = await api.given.user()
  await api.sql`
    insert into audit_entries (initiator, action, user_id, at)
    select 'user', 'did_something', ${userId}, now() - interval '500 days' from generate_series(1, 25)`
  const audit = retentionRules.find((rule) => rule.table === 'audit_entries')
  if (!audit) throw new Error('there is no retention rule for the audit')
  expect(await deleteExpired(api.sql, audit, api.services.config.retention, 10)).toBe(10)
  await deleteExpiredRows(api, 4)
  const [left] = await api.sql`select count(*)::int as entries from audit_entries where user_id = ${userId}`
  // The sign-in of `given` is a minute old.
  expect(left?.entries).toBe(1)
})

test('every retention rule finds its rows, and those deleted with them, by an index', async () => {
  const own = await startApi()
  await createExpiredRows(own, 500 * day)
  await own.sql.begin(async (tx) => {
    await tx`set local enable_seqscan = off`
    const sequentialScans = () => tx`
      select relname, seq_scan from pg_stat_xact_user_tables
      where relname = any(${retentionRules.map((rule) => rule.table)}) order by relname`
    const before = await sequentialScans()
    for (const rule of retentionRules)
      expect([rule.table, await deleteExpired(tx, rule, own.services.config.retention, 10)]).not.toEqual([
        rule.table,
        0,
      ])
    expect(await sequentialScans()).toEqual(before)
  })
})

test('deleted rows are counted by table', async () => {
  const own = await startApi()
  await createExpiredRows(own, 500 * day)
  const registry = new Registry()
  const [job] = retentionJobs({ ...retentionDeps(own), metrics: createWorkerMetrics(registry) })
  await job?.run()
  const [metric] = (await registry.getMetricsAsJSON()).filter(({ name }) => name === 'svc_retention_deleted_rows_total')
  const rows = Object.fromEntries(metric?.values.map(({ labels, value }) => [labels.table, value]) ?? [])
  expect(rows).toMatchObject({ auth_sessions: 2, instances: 1, mail_tokens: 1, billing_events: 1, relay_sessions: 0 })
})

test('a run that is aborted deletes nothing more', async () => {
  const own = await startApi()
  const account = await createExpiredRows(own, 500 * day)
  const [job] = retentionJobs(retentionDeps(own))
  await job?.run(AbortSignal.abort())
  expect(await countRows(own, account)).toMatchObject({ mailTokens: 1, auditEntries: 1 })
  await job?.run()
  expect(await countRows(own, account)).toMatchObject({ mailTokens: 0, auditEntries: 0 })
})

test('a worker deletes expired data in one job', () => {
  expect(retentionJobs(retentionDeps(api))).toMatchObject([{ name: 'forget_expired', everySeconds: 600 }])
})
