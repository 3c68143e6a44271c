/**
 * The rules that hold at each moment of the simulation and after it. Each function returns descriptions of what breaks
 * them.
 */
import type { Database } from '../../db/connection.ts'
import type { Millis } from '../../domain/millis.ts'
import { usageEndedSecondsAgo } from '../../domain/relay/health.ts'
import { isLegalTransition, type RelayReason, type RelayState } from '../../domain/relay/session.ts'
import type { SimulatedProvider } from './fleet-provider.ts'
import type { Reception } from './fleet-receptions.ts'

/** Rules of the rows that hold in every snapshot. */
export async function findBrokenRows(sql: Database, providers: readonly SimulatedProvider[]): Promise<string[]> {
  const regions = providers.map(({ region }) => region)
  const capacities = providers.map(({ capacity }) => capacity)
  const rows = await sql<{ broken: string }[]>`
    with region as (
      select * from unnest(${regions}::text[], ${capacities}::int[]) as r (name, capacity)
    )
    select format('connection %s of %s has %s live sessions', connection_id, user_id, count(*)) as broken
    from relay_sessions where state <> 'stopped' and command <> 'disconnect'
    group by user_id, connection_id having count(*) > 1
    union all
    -- One that is to take over is not the session's yet.
    select format('session %s has %s instances: %s', session_id, count(*), string_agg(i.instance_id, ' '))
    from instances i join relay_sessions s on s.id = i.session_id
    where retired_at is null and gone_at is null and i.binding <= s.binding
    group by session_id having count(*) > 1
    union all
    select format('session %s has two instances that are to take over', session_id)
    from instances i join relay_sessions s on s.id = i.session_id
    where retired_at is null and gone_at is null and i.binding > s.binding
    group by session_id having count(*) > 1
    union all
    select format('%s has %s instances', name, count(*)) from region join instances on region = name and gone_at is null
    group by name, capacity having count(*) > capacity
    union all
    select format('%s has %s live sessions', name, count(*)) from region join relay_sessions on region = name
    where state <> 'stopped' group by name, capacity having count(*) > capacity`
  return rows.map(({ broken }) => broken)
}

/**
 * A row states that its instance is gone only after that is proven. Otherwise another instance could take its place too
 * early.
 */
export async function findWronglyGone(sql: Database, providers: readonly SimulatedProvider[]): Promise<string[]> {
  const existing = providers.flatMap((provider) => provider.listExisting())
  const rows = await sql<{ instanceId: string; text: string }[]>`
    select instance_id, format('%s', to_jsonb(i) - 'host' - 'image') as text
    from instances i where gone_at is not null and instance_id = any(${existing.map(({ instanceId }) => instanceId)}::text[])`
  // The provider may have ended some of them since.
  return rows
    .filter(({ instanceId }) =>
      existing.some((instance) => instance.instanceId === instanceId && instance.endedAt === null),
    )
    .map(({ text }) => `the row states that an existing instance is gone: ${text}`)
}

interface TransitionRow {
  sessionId: string
  version: number
  fromState: RelayState
  toState: RelayState
  reason: RelayReason
  initiator: string
  sessionVersion: number
  sessionState: RelayState
}

/** Each session's transitions are legal, numbered without a gap, and lead from `provisioning` to its present state. */
export async function findBrokenTransitions(sql: Database): Promise<string[]> {
  const rows = await sql<TransitionRow[]>`
    select t.*, s.version as session_version, s.state as session_state
    from relay_transitions t join relay_sessions s on s.id = t.session_id order by t.session_id, t.version`
  const broken: string[] = []
  let previous: TransitionRow | undefined
  for (const [index, row] of rows.entries()) {
    const before = previous?.sessionId === row.sessionId ? previous : undefined
    const text = `session ${row.sessionId}, version ${row.version}: ${row.fromState} → ${row.toState} (${row.reason})`
    if (!isLegalTransition(row.fromState, row.toState, row.reason)) broken.push(`${text} is not legal`)
    if (row.version !== (before?.version ?? 0) + 1) broken.push(`${text} follows version ${before?.version ?? 0}`)
    if (row.fromState !== (before?.toState ?? 'provisioning'))
      broken.push(`${text} follows ${before?.toState ?? 'the creation'}`)
    const isLast = rows[index + 1]?.sessionId !== row.sessionId
    if (isLast && (row.version !== row.sessionVersion || row.toState !== row.sessionState))
      broken.push(`${text} is the last one of a session in ${row.sessionState} with version ${row.sessionVersion}`)
    previous = row
  }
  return broken
}

/** Accepted starts whose session did not end with a reason. */
export async function findUnfinishedStarts(sql: Database, accepted: ReadonlySet<string>): Promise<string[]> {
  const rows = await sql<{ id: string; state: string; reason: string }[]>`
    select id, state, reason from relay_sessions where id = any(${[...accepted]}::uuid[])`
  const byId = new Map(rows.map((row) => [row.id, row]))
  return [...accepted].flatMap((id) => {
    const row = byId.get(id)
    if (!row) return [`session ${id} has no row`]
    return row.state === 'stopped' && row.reason !== 'start_requested'
      ? []
      : [`session ${id} is ${row.state} (${row.reason})`]
  })
}

/** A time by the clock of this machine in milliseconds, which Postgres uses as well. */
/** Timestamps of Postgres are those of the begin of the transaction, and the provider's are rounded. */
const toleranceMillis = 5

interface OwnedRow {
  instanceId: string
  sessionId: string
  ownedFrom: Millis
  ownedUntil: Millis | null
}

/**
 * Sessions with two instances: instances that existed at the provider at the same moment, while both belonged to the
 * session and neither was retired.
 */
export async function findDoubles(sql: Database, providers: readonly SimulatedProvider[]): Promise<string[]> {
  const rows = await sql<OwnedRow[]>`
    select i.instance_id, i.session_id, extract(epoch from case when i.binding = 1
        then coalesce(assigned_at, i.created_at) else bound_at end)::float8 * 1000 as owned_from,
      extract(epoch from retired_at)::float8 * 1000 as owned_until
    from instances i left join relay_replacements r on r.replaced_by = i.instance_id
    where i.session_id is not null and (i.binding = 1 or bound_at is not null)`
  const lives = new Map(
    providers.flatMap(({ instances }) => instances.map((instance) => [instance.instanceId, instance] as const)),
  )
  const owned = rows.flatMap(({ instanceId, sessionId, ownedFrom, ownedUntil }) => {
    const life = lives.get(instanceId)
    if (!life) return []
    const from = Math.max(ownedFrom, +life.createdAt)
    const until = Math.min(ownedUntil ?? Number.POSITIVE_INFINITY, life.endedAt ?? Number.POSITIVE_INFINITY)
    return [{ instanceId, sessionId, from, until }]
  })
  return [...new Set(owned.map(({ sessionId }) => sessionId))].flatMap((sessionId) => {
    const ordered = owned.filter((part) => part.sessionId === sessionId).toSorted((a, b) => a.from - b.from)
    return ordered.slice(1).flatMap((part, index) => {
      const before = ordered[index]
      if (!before || before.until <= part.from + toleranceMillis) return []
      const seconds = ((Math.min(part.until, before.until) - part.from) / 1000).toFixed(1)
      return [`session ${sessionId} had ${before.instanceId} and ${part.instanceId} for ${seconds} s`]
    })
  })
}

interface UsageRow {
  id: string
  region: string
  activeAt: number | null
  stoppedAt: number
  lastReportAt: number | null
  intervals: number
  replacements: number
  /** Those of them with time that counts between the last report of one relay and the first of the next. */
  charged: number
  /** It ended before a relay that had taken over made it active again. */
  endsWithLost: boolean
  startedAt: number | null
  endedAt: number | null
}

interface UsageLimits {
  readonly healthTimeoutSeconds: number
  readonly healthIntervalSeconds: number
  /** In their order. */
  readonly receptions: readonly Reception[]
}

/** Timestamps have microseconds, and durations are computed with floating point. */
const toleranceSeconds = 0.001

/**
 * Compares the ledger of relay time with the transitions: one interval for each relay of a session that was active,
 * from its first transition to active to its stop, or to the earlier end that the rule for silent relays gives. Between
 * two relays no time counts.
 */
export async function findBrokenUsage(
  sql: Database,
  limits: UsageLimits,
): Promise<{ broken: string[]; shortened: number }> {
  const rows = await sql<UsageRow[]>`
    select s.id, s.region, extract(epoch from t.active_at)::float8 as active_at, extract(epoch from t.stopped_at)::float8 as stopped_at,
      extract(epoch from h.last_report_at)::float8 as last_report_at, u.intervals, r.*,
      extract(epoch from u.started_at)::float8 as started_at, extract(epoch from u.ended_at)::float8 as ended_at
    from relay_sessions s
    cross join lateral (
      select min(at) filter (where to_state = 'active') as active_at, max(at) filter (where to_state = 'stopped') as stopped_at
      from relay_transitions where session_id = s.id
    ) t
    cross join lateral (
      select count(*)::int as intervals, min(started_at) as started_at, max(ended_at) as ended_at
      from usage_intervals where session_id = s.id
    ) u
    cross join lateral (
      select count(*)::int as replacements, (count(*) filter (where exists (
        select from usage_intervals i where i.session_id = s.id
          and i.started_at < bound_at and i.ended_at > greatest(last_report_at, i.started_at) + interval '10 milliseconds'
          and i.ended_at > last_report_at and i.started_at <= last_report_at
      )))::int as charged,
        -- Its relay may have sent its only report before the session was active.
        coalesce(bool_or(exists (
          select from usage_intervals i where i.session_id = s.id and i.ended_at = u.ended_at
            and abs(extract(epoch from greatest(last_report_at, i.started_at) - i.ended_at)) < 0.01
        )), false) as ends_with_lost
      from relay_replacements where session_id = s.id
    ) r
    left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
    where s.state = 'stopped'`
  const checked = rows.map((row) => checkUsage(row, limits))
  return {
    broken: checked.flatMap(({ broken }) => broken),
    shortened: checked.filter(({ isShortened }) => isShortened).length,
  }
}

function checkUsage(row: UsageRow, { receptions, ...limits }: UsageLimits): { broken: string[]; isShortened: boolean } {
  const { activeAt, stoppedAt, lastReportAt, intervals, charged, endsWithLost, replacements, startedAt, endedAt } = row
  // One interval for each relay that made the session active.
  const isComplete = charged === 0 && intervals >= 1 && intervals <= replacements + 1
  if (activeAt === null || startedAt === null || endedAt === null || !isComplete) {
    const isRight = activeAt === null && intervals === 0
    const text = `session ${row.id}, active at ${activeAt}, has ${intervals} intervals, which end at ${endedAt}, after ${replacements} replacements, ${charged} charged`
    return { broken: isRight ? [] : [text], isShortened: false }
  }
  // A report that was stored while the session stopped replaced the time of the one before it.
  const lastReportSeconds = lastReportAt === null ? null : Math.max(0, stoppedAt - lastReportAt)
  const ofRegion = receptions.filter(({ region }) => region === null || region === row.region)
  const since = ofRegion.findLast((reception) => reception.since <= stoppedAt)?.since ?? stoppedAt
  const api = { forSeconds: stoppedAt - since, lastSeenSeconds: 0 }
  const expected = Math.max(activeAt, stoppedAt - usageEndedSecondsAgo({ lastReportSeconds, api, path: null }, limits))
  // During a break silence does not count, and so the session is charged until its stop.
  const isInBreak = ofRegion.some((next) => next.seenBefore < stoppedAt && next.since > stoppedAt)
  const isEnd = (at: number) => Math.abs(endedAt - at) < toleranceSeconds
  const isRight =
    Math.abs(startedAt - activeAt) < toleranceSeconds &&
    (isEnd(expected) || endsWithLost || (isInBreak && isEnd(stoppedAt)))
  const text = `session ${row.id} is charged from ${startedAt} to ${endedAt} in place of ${activeAt} to ${expected}`
  return { broken: isRight ? [] : [text], isShortened: expected < stoppedAt }
}

/** The relay time that the ledger has for each user, in whole seconds as the service shows it. */
export const sumUsage = async (sql: Database): Promise<Map<string, number>> =>
  new Map(
    (
      await sql<{ userId: string; seconds: number }[]>`
        select user_id, floor(sum(extract(epoch from ended_at - started_at)))::int as seconds from usage_intervals group by user_id`
    ).map(({ userId, seconds }) => [userId, seconds]),
  )

/** What is left when all users have stopped: everything but the warm instances. */
export async function findLeftovers(
  sql: Database,
  providers: readonly SimulatedProvider[],
  warm: Readonly<Record<string, number>>,
): Promise<string[]> {
  const rows = await sql<{ instanceId: string; region: string; isWaiting: boolean; text: string }[]>`
    select instance_id, region, is_warm and session_id is null and retired_at is null and launched_at is not null as is_waiting,
      format('%s: %s', instance_id, to_jsonb(i) - 'host' - 'image') as text
    from instances i where gone_at is null`
  return providers.flatMap((provider) => {
    const { region } = provider
    const stored = rows.filter((row) => row.region === region)
    const waiting = stored.filter(({ isWaiting }) => isWaiting)
    const ids = new Set(waiting.map(({ instanceId }) => instanceId))
    const orphans = provider.listExisting().filter(({ instanceId }) => !ids.has(instanceId))
    const lost = waiting.filter(
      (row) => !provider.listExisting().some((instance) => instance.instanceId === row.instanceId),
    )
    return [
      ...stored.filter(({ isWaiting }) => !isWaiting).map(({ text }) => `the row of ${text} is left`),
      ...orphans.map(({ instanceId }) => `${instanceId} is left at the provider`),
      ...lost.map(({ instanceId }) => `${instanceId} waits for a session and does not exist`),
      ...(waiting.length === (warm[region] ?? 0) ? [] : [`${waiting.length} warm instances wait in ${region}`]),
    ]
  })
}
