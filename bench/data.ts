/** Fills a database as if the service had been in use for months. */
import { randomUUID } from 'node:crypto'
import { createAccessTokens } from '../api/identity/access-tokens.ts'
import { createRelaySessionTokens } from '../api/relay-session-tokens.ts'
import type { Database } from '../db/connection.ts'
import { sealStreamToken } from '../db/sealed-tokens.ts'
import { createSealing } from '../platform/sealing.ts'
import { logProgress, region, type Stack } from './stack.ts'

export const stoppedSessions = 100_000
const users = 1000
/** Longer than a run on a busy machine; the longest that the service can be configured to issue is 15 minutes. */
const tokenSeconds = 12 * 3600
const activeSessions = 500

export interface BenchUser {
  readonly userId: string
  readonly authSessionId: string
  readonly bearer: string
}

export interface BenchData {
  readonly users: readonly BenchUser[]
  /** Active sessions without a workflow; the first users have one each. */
  readonly activeSessionIds: readonly string[]
}

export async function fillDatabase(stack: Stack): Promise<BenchData> {
  logProgress(
    `filling the database with ${users} users, ${activeSessions} active and ${stoppedSessions} stopped sessions`,
  )
  const all = await insertUsers(stack, users)
  const userIds = all.map((user) => user.userId)
  await insertStoppedSessions(stack.sql, userIds)
  const activeSessionIds = await insertActiveSessions(stack, userIds.slice(0, activeSessions))
  await stack.sql`vacuum analyze`
  return { users: all, activeSessionIds }
}

/**
 * Accounts whose stream tokens are sealed like those of the service, which otherwise reports rows that it cannot seal
 * again.
 * @param name begins their addresses and makes their tokens differ from those of others.
 * @returns their ids.
 */
export async function insertAccounts(
  { sql, config }: Pick<Stack, 'sql' | 'config'>,
  { name, count, plan }: { readonly name: string; readonly count: number; readonly plan?: object },
): Promise<string[]> {
  const sealing = createSealing(config.oauthEncryptionKeys)
  const added = Array.from({ length: count }, (_, index) => {
    const id = randomUUID()
    const { sealed, hash } = sealStreamToken(sealing, id, `${name}${String(index).padStart(7, '0')}`)
    return { id, email: `${name}-${index}@bench.test`, stream_token_sealed: sealed, stream_token_hash: hash, ...plan }
  })
  for (const chunk of chunksOf(added)) await sql`insert into users ${sql(chunk)}`
  return added.map(({ id }) => id)
}

/**
 * Users with a paid plan for four relays, each with an auth session.
 * @param name as of {@link insertAccounts}.
 */
export async function insertUsers(
  stack: Pick<Stack, 'sql' | 'config'>,
  count: number,
  name = 'u',
): Promise<BenchUser[]> {
  const { sql, config } = stack
  const tokens = createAccessTokens({ ...config, jwt: { ...config.jwt, ttlSeconds: tokenSeconds } })
  const plan = { plan_tier: 'paid', plan_status: 'active', addons: 3 }
  const userIds = await insertAccounts(stack, { name, count, plan })
  const authSessions = await sql<{ userId: string; id: string }[]>`
    insert into auth_sessions (user_id, client, ip)
    select id, 'bench', '127.0.0.1' from unnest(${userIds}::uuid[]) id returning user_id, id`
  return Promise.all(
    authSessions.map(async ({ userId, id: authSessionId }) => ({
      userId,
      authSessionId,
      bearer: `Bearer ${await tokens.sign({ userId, authSessionId })}`,
    })),
  )
}

const rowsPerStatement = 1000

/** A statement has at most 65,535 parameters. */
const chunksOf = <Item>(items: readonly Item[]): Item[][] =>
  Array.from({ length: Math.ceil(items.length / rowsPerStatement) }, (_, index) =>
    items.slice(index * rowsPerStatement, (index + 1) * rowsPerStatement),
  )

/** Sessions of all users over the last 90 days, each with its instance, its usage and its last report. */
async function insertStoppedSessions(sql: Database, userIds: readonly string[]): Promise<void> {
  await sql.begin(async (tx) => {
    // Disables the trigger, which requires that a session begins in its first state.
    await tx`set local session_replication_role = replica`
    await tx`
      insert into relay_sessions (user_id, connection_id, region, state, reason, version, command, command_seq, command_initiator,
        commanded_at, command_delivered_seq, instance_id, created_at, active_at, stopped_at)
      select (${userIds}::uuid[])[1 + n % ${userIds.length}::int], 'default', ${region}, 'stopped', 'stop_requested', 3, 'stop', 2, 'user',
        at, 2, 'old-' || n, at, at, at + interval '2 hours'
      from (select n, now() - n * interval '77 seconds' - interval '3 hours' as at
            from generate_series(1, ${stoppedSessions}) n) past`
    await tx`
      insert into instances (instance_id, session_id, region, created_at, gone_at)
      select instance_id, id, region, created_at, stopped_at from relay_sessions where state = 'stopped'`
    await tx`
      insert into usage_intervals (session_id, user_id, started_at, ended_at)
      select id, user_id, active_at, stopped_at from relay_sessions where state = 'stopped'`
    await tx`
      insert into relay_health (session_id, instance_id, last_report_at)
      select id, instance_id, stopped_at from relay_sessions where state = 'stopped'`
  })
}

/** Active sessions without a workflow, one a user. @returns their ids. */
export async function insertActiveSessions(
  { sql, config }: Stack,
  userIds: readonly string[],
  inRegion = region,
): Promise<string[]> {
  const sealing = createSealing(config.oauthEncryptionKeys)
  const added = userIds.map((userId) => {
    const { sessionId, pairToken, relayWsToken } = createRelaySessionTokens(sealing)
    return {
      id: sessionId,
      user_id: userId,
      connection_id: 'default',
      region: inRegion,
      command_initiator: 'user',
      command_delivered_seq: 1,
      pair_token_sealed: pairToken.sealed,
      pair_token_hash: pairToken.hash,
      relay_ws_token_sealed: relayWsToken.sealed,
      relay_ws_token_hash: relayWsToken.hash,
    }
  })
  const ids = added.map((session) => session.id)
  for (const chunk of chunksOf(added)) await sql`insert into relay_sessions ${sql(chunk)}`
  await sql`
    update relay_sessions set state = 'active', reason = 'relay_ready', version = 1, active_at = now(),
      instance_id = 'fake-' || id, relay_host = '198.51.100.7', srtla_port = 5000, publish_port = 4001, play_port = 4000,
      stats_port = 5080
    where id = any(${ids}::uuid[])`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at)
    select id, user_id, active_at from relay_sessions where id = any(${ids}::uuid[])`
  await sql`
    insert into instances (instance_id, session_id, region)
    select instance_id, id, region from relay_sessions where id = any(${ids}::uuid[])`
  await sql`
    insert into relay_health (session_id, instance_id) select id, instance_id from relay_sessions where id = any(${ids}::uuid[])`
  return ids
}
