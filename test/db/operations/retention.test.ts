/** The rules of retention: every table has one, and rows are deleted by it. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { findUsageByDay } from '../../../db/billing/usage-days.ts'
import { boundedTables, retentionRules } from '../../../db/operations/retention.ts'
import { deleteEndedRelaySessions } from '../../../db/relay/session-retention.ts'
import { startApi } from '../../support/api.ts'
import { deleteExpiredRows } from '../../support/retention.ts'

const api = await startApi({
  SVC_RETENTION_SESSION_DAYS: '40',
  SVC_RETENTION_INSTANCE_DAYS: '20',
  SVC_RETENTION_RECORD_DAYS: '12',
})
const { sql } = api
const periods = api.services.config.retention
const timeBank = { hoursPerRelay: 200, enforcement: 'report', trialSeconds: 0 } as const

interface EndedSession {
  readonly daysAgo: number
  readonly connectionId?: string
  /** The relay time before the end; null leaves the interval open. */
  readonly seconds?: number | null
}

/** Adds a session that ended some days ago, with relay time, a transition and a health report. */
async function addSession(userId: string, { daysAgo, connectionId = 'cam', seconds = 3600 }: EndedSession) {
  const [row] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, command_delivered_seq)
    values (${userId}, ${connectionId}, 'local', 'user', 1) returning id`
  const id = row?.id ?? ''
  const ended = sql`now() - make_interval(days => ${daysAgo})`
  await sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = ${ended} where id = ${id}`
  await sql`
    insert into relay_transitions (session_id, version, from_state, to_state, reason, initiator)
    values (${id}, 1, 'provisioning', 'stopped', 'provision_failed', 'system')`
  await sql`insert into relay_health (session_id, instance_id) values (${id}, 'i-1')`
  await sql`
    insert into stream_events (session_id, number, kind, at, bitrate_kbps) values (${id}, 1, 'stream_ended', now(), 0)`
  await sql`insert into stream_records (session_id, began_at, points) values (${id}, now(), '\\x00')`
  await sql`
    insert into path_events (session_id, number, kind, at, players, instance_id, process_started_at_ms, seq)
    values (${id}, 1, 'player_joined', now(), 1, 'i-1', 1, 1)`
  await sql`insert into relay_commands (session_id, seq, command, initiator) values (${id}, 2, 'stop', 'user')`
  await sql`
    insert into usage_intervals (session_id, user_id, started_at, ended_at)
    values (${id}, ${userId}, ${ended} - make_interval(secs => ${seconds ?? 60}), ${seconds === null ? null : ended})`
  return id
}

const listSessions = async (userId: string): Promise<string[]> =>
  (await sql<{ id: string }[]>`select id from relay_sessions where user_id = ${userId} order by stopped_at`).map(
    (row) => row.id,
  )

const sumOfDays = async (userId: string): Promise<number> => {
  const [row] = await sql<{ seconds: number }[]>`
    select coalesce(sum(seconds), 0)::float8 as seconds from usage_days where user_id = ${userId}`
  return row?.seconds ?? 0
}

test('every table of the schema is named by one rule of retention, and by the page about it', async () => {
  const tables = (
    await sql<{ name: string }[]>`select tablename as name from pg_tables where schemaname = 'public' order by 1`
  ).map((row) => row.name)
  const named = [...new Set(retentionRules.map((rule) => rule.table)), ...Object.values(boundedTables).flat()]
  expect(named.toSorted()).toEqual(tables)
  const page = await readFile(new URL('../../../docs/retention.md', import.meta.url), 'utf8')
  expect(tables.filter((table) => !page.includes(`\`${table}\``))).toEqual([])
})

test('an ended session is deleted with its rows after its period, and its relay time stays by day', async () => {
  const { userId } = await api.given.user()
  const old = await addSession(userId, { daysAgo: 41 })
  const young = await addSession(userId, { daysAgo: 39 })
  await deleteExpiredRows(api)
  expect(await listSessions(userId)).toEqual([young])
  for (const table of [...boundedTables.deletedWithSession, 'stream_records', 'usage_intervals'])
    expect(await sql`select from ${sql(table)} where session_id = ${old}`).toHaveLength(0)
  expect(await sumOfDays(userId)).toBe(3600)
})

test('relay time of deleted sessions is added up by day in UTC and by connection, to the microsecond', async () => {
  const { userId } = await api.given.user()
  for (const connectionId of ['cam', 'cam', 'phone'])
    await addSession(userId, { daysAgo: 50, connectionId, seconds: 86_400.000001 })
  const before = await sql`
    select day::date::text as day, connection_id,
      sum(least(u.ended_at at time zone 'UTC', day + interval '1 day') - greatest(u.started_at at time zone 'UTC', day)) as used
    from usage_intervals u join relay_sessions s on s.id = u.session_id,
      generate_series(date_trunc('day', u.started_at at time zone 'UTC'), u.ended_at at time zone 'UTC', interval '1 day') day
    where u.user_id = ${userId} group by 1, 2 order by 1, 2`
  await deleteEndedRelaySessions(sql, periods, 1)
  await deleteExpiredRows(api)
  const after = await sql`
    select day::text, connection_id, make_interval(secs => seconds::float8) as used from usage_days
    where user_id = ${userId} order by 1, 2`
  expect(after).toEqual(before)
  expect(await listSessions(userId)).toEqual([])
})

test('the networks of trials are deleted after a day, and the addresses of erased ones after 400 days', async () => {
  const hash = (byte: number) => Buffer.alloc(32, byte)
  for (const [byte, hours] of [
    [1, 23],
    [2, 25],
  ] as const)
    await sql`
      insert into trial_networks (network_hash, starts, last_at)
      select ${hash(byte)}, array[at], at from (select now() - make_interval(hours => ${hours}) as at) started`
  for (const [byte, days] of [
    [3, 399],
    [4, 401],
  ] as const)
    await sql`insert into erased_trials values (${hash(byte)}, now() - make_interval(days => ${days}))`
  await deleteExpiredRows(api)
  expect(await sql`select network_hash from trial_networks`).toEqual([{ networkHash: hash(1) }])
  expect(await sql`select address_hash from erased_trials`).toEqual([{ addressHash: hash(3) }])
})

test('a live session, one with open relay time and one with an existing instance stay, however old they are', async () => {
  const { userId } = await api.given.user()
  const live = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, created_at)
    values (${userId}, 'live', 'local', 'user', now() - interval '500 days') returning id`
  const open = await addSession(userId, { daysAgo: 500, seconds: null })
  const served = await addSession(userId, { daysAgo: 499 })
  await sql`insert into instances (instance_id, session_id, region) values (${`i-${served}`}, ${served}, 'local')`
  await deleteExpiredRows(api)
  expect(await listSessions(userId)).toEqual([open, served, live[0]?.id])
  await sql`update instances set gone_at = now() where session_id = ${served}`
  await deleteExpiredRows(api)
  expect(await listSessions(userId)).toEqual([open, live[0]?.id])
})

test('sessions of the current billing period stay, so that the usage of the cycle does not change', async () => {
  const { userId } = await api.given.user()
  await sql`
    update users set plan_tier = 'paid', plan_status = 'active', period_start = now() - interval '100 days',
      period_end = now() + interval '265 days' where id = ${userId}`
  const held = await addSession(userId, { daysAgo: 99 })
  await addSession(userId, { daysAgo: 101 })
  const before = await findUsageByDay(sql, userId, timeBank)
  await deleteExpiredRows(api)
  expect(await listSessions(userId)).toEqual([held])
  const after = await findUsageByDay(sql, userId, timeBank)
  expect(after?.days).toEqual(before?.days)
  expect(after?.account.usage.consumedSeconds).toBe(3600)
})

test('sessions of an account that is to be erased are left to its deletion', async () => {
  const { userId } = await api.given.user()
  await sql`
    update users set deletion_due_at = now() + interval '1 day', deletion_attempt_at = now() + interval '1 day'
    where id = ${userId}`
  const held = await addSession(userId, { daysAgo: 60 })
  await deleteExpiredRows(api)
  expect(await listSessions(userId)).toEqual([held])
})

test('two jobs at once delete each session and count its relay time once', async () => {
  const { userId } = await api.given.user()
  for (let daysAgo = 50; daysAgo < 60; daysAgo += 1) await addSession(userId, { daysAgo })
  await Promise.all([1, 2, 3].map(() => deleteExpiredRows(api, 2)))
  expect(await listSessions(userId)).toEqual([])
  expect(await sumOfDays(userId)).toBe(36_000)
})

test('one statement deletes no more sessions than its limit', async () => {
  const { userId } = await api.given.user()
  for (let daysAgo = 50; daysAgo < 55; daysAgo += 1) await addSession(userId, { daysAgo })
  expect(await deleteEndedRelaySessions(sql, periods, 2)).toBe(2)
  expect(await listSessions(userId)).toHaveLength(3)
})

test('points of stream records are deleted after their period, and those of later ten minutes stay', async () => {
  const { userId } = await api.given.user()
  const id = await addSession(userId, { daysAgo: 1 })
  await sql`delete from stream_records where session_id = ${id}`
  await sql`
    insert into stream_records (session_id, began_at, points)
    select ${id}, now() - make_interval(days => days, mins => 1), '\\x00' from unnest(array[11, 12, 13]) days`
  await deleteExpiredRows(api)
  const left = await sql`
    select floor(extract(epoch from now() - began_at) / 86400)::int as days from stream_records where session_id = ${id}`
  expect(left).toEqual([{ days: 11 }])
  expect(await listSessions(userId)).toEqual([id])
})

test.each([
  [19, 1],
  [21, 0],
])('of instances that are gone for %i days, %i stays after a period of 20 days', async (daysAgo, kept) => {
  const id = `gone-${daysAgo}`
  await sql`
    insert into instances (instance_id, region, created_at, gone_at)
    values (${id}, 'local', now() - interval '1 year', now() - make_interval(days => ${daysAgo}))`
  await sql`
    insert into instances (instance_id, region, created_at) values (${`${id}-exists`}, 'local', now() - interval '1 year')`
  await deleteExpiredRows(api)
  expect(await sql`select from instances where instance_id = ${id}`).toHaveLength(kept)
  expect(await sql`select from instances where instance_id = ${`${id}-exists`}`).toHaveLength(1)
})

test.each([
  ['applied', false, 3649, 1],
  ['applied', false, 3651, 0],
  ['ignored', false, 3651, 0],
  ['dead', false, 3651, 0],
  ['parked', false, 3651, 1],
  // Entitlements are computed from all events of an account.
  ['applied', true, 3651, 1],
])(
  'of billing events that are %s, with an account: %s, and were received %i days ago, %i stays',
  async (status, hasAccount, daysAgo, kept) => {
    const { userId } = await api.given.user()
    const key = `${status}-${hasAccount}-${daysAgo}`
    await sql`
      insert into billing_events (provider, event_key, type, action, event, user_id, status, received_at)
      values ('stripe', ${key}, 'x', 'refund', '{}', ${hasAccount ? userId : null}, ${status},
        now() - make_interval(days => ${daysAgo}))`
    await deleteExpiredRows(api)
    expect(await sql`select from billing_events where event_key = ${key}`).toHaveLength(kept)
  },
)
