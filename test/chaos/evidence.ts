/** Everything that the invariants are checked against: the journal, the rows, the workflows and the instances. */
import type { Client as TemporalClient } from '@temporalio/client'
import type { Database } from '../../db/connection.ts'
import { listLocalRelays, relayFolderOf } from '../../providers/relay/local-relays.ts'
import type { Cloud, CloudInstance } from './cloud.ts'
import type { Journal } from './journal.ts'
import type { Service } from './service.ts'

/** Times are milliseconds since 1970 by Postgres's clock, which is that of this machine. */
export interface SessionRow {
  readonly id: string
  readonly userId: string
  readonly connectionId: string
  readonly state: string
  readonly reason: string
  readonly version: number
  readonly command: string
  readonly commandSeq: number
  readonly commandDeliveredSeq: number
  readonly commandedAt: number
  readonly createdAt: number
  readonly stoppedAt: number | null
  readonly lastReportAt: number | null
}

export interface TransitionRow {
  readonly sessionId: string
  readonly version: number
  readonly fromState: string
  readonly toState: string
  readonly reason: string
  readonly initiator: string
  readonly at: number
}

export interface UsageRow {
  readonly sessionId: string
  readonly startedAt: number
  readonly endedAt: number | null
}

export interface ReplacementRow {
  readonly sessionId: string
  /** The instance that was replaced. */
  readonly instanceId: string
  readonly lastReportAt: number
  readonly boundAt: number
}

export interface EventRow {
  readonly eventKey: string
  readonly provider: string
  readonly userId: string | null
  readonly status: string
  readonly error: string | null
  readonly receivedAt: number
  readonly appliedAt: number | null
}

export interface UserRow {
  readonly id: string
  readonly planTier: string
  readonly addons: number
  readonly isDisabled: boolean
}

export interface InstanceRow {
  readonly instanceId: string
  readonly sessionId: string | null
  readonly ownedFrom: number
  readonly retiredAt: number | null
  readonly goneAt: number | null
}

export interface Evidence {
  readonly journal: Journal
  readonly collectedAt: number
  readonly sessions: readonly SessionRow[]
  readonly transitions: readonly TransitionRow[]
  readonly usage: readonly UsageRow[]
  readonly replacements: readonly ReplacementRow[]
  readonly events: readonly EventRow[]
  readonly users: readonly UserRow[]
  readonly instances: readonly InstanceRow[]
  readonly cloudInstances: readonly CloudInstance[]
  /** The instances whose processes run on this machine. */
  readonly processes: readonly { readonly instanceId: string; readonly sessionId: string | null }[]
  /** The ids of the workflows of sessions that run. */
  readonly openWorkflows: readonly string[]
}

export async function collectEvidence(service: Service, cloud: Cloud, journal: Journal): Promise<Evidence> {
  const { sql, temporal, dataDir } = service
  return {
    journal,
    collectedAt: Date.now(),
    ...(await readRows(sql)),
    cloudInstances: [...cloud.instances.values()],
    processes: await listLocalRelays(relayFolderOf(dataDir)),
    openWorkflows: await listOpenSessionWorkflows(temporal),
  }
}

/** One snapshot of all tables. */
const readRows = (sql: Database) =>
  sql.begin('isolation level repeatable read read only', async (tx) => {
    const millis = (column: string) => tx`(extract(epoch from ${tx(column)}) * 1000)::float8`
    return {
      sessions: await tx<SessionRow[]>`
        select s.id, user_id, connection_id, state, reason, version, command, command_seq, command_delivered_seq,
          ${millis('commanded_at')} as commanded_at, ${millis('created_at')} as created_at,
          ${millis('stopped_at')} as stopped_at, ${millis('last_report_at')} as last_report_at
        from relay_sessions s left join relay_health h on h.session_id = s.id and h.instance_id = s.instance_id
        order by created_at`,
      transitions: await tx<TransitionRow[]>`
        select session_id, version, from_state, to_state, reason, initiator, ${millis('at')} as at
        from relay_transitions order by session_id, version`,
      usage: await tx<UsageRow[]>`
        select session_id, ${millis('started_at')} as started_at, ${millis('ended_at')} as ended_at from usage_intervals`,
      replacements: await tx<ReplacementRow[]>`
        select session_id, instance_id, ${millis('last_report_at')} as last_report_at, ${millis('bound_at')} as bound_at
        from relay_replacements order by bound_at`,
      events: await tx<EventRow[]>`
        select event_key, provider, user_id, status, error, ${millis('received_at')} as received_at,
          ${millis('applied_at')} as applied_at
        from billing_events order by seq`,
      users: await tx<UserRow[]>`select id, plan_tier, addons, disabled_at is not null as is_disabled from users`,
      instances: await tx<InstanceRow[]>`
        select i.instance_id, i.session_id, ${millis('retired_at')} as retired_at, ${millis('gone_at')} as gone_at,
          -- One that is to take over is the session's from its first report on.
          (extract(epoch from case when i.binding = 1 then coalesce(assigned_at, i.created_at)
            else coalesce(bound_at, now()) end) * 1000)::float8 as owned_from
        from instances i left join relay_replacements r on r.replaced_by = i.instance_id`,
    }
  })

export async function listOpenSessionWorkflows(temporal: TemporalClient): Promise<string[]> {
  const open: string[] = []
  for await (const { workflowId } of temporal.workflow.list({ query: 'ExecutionStatus = "Running"' }))
    if (workflowId.startsWith('relay-session/')) open.push(workflowId)
  return open
}

/** Whether nothing is under way any more. The checks then find what stays. */
export async function hasSettled({ sql, temporal, dataDir }: Service, cloud: Cloud): Promise<boolean> {
  const [busy] = await sql<{ count: number }[]>`
    select (select count(*) from relay_sessions where state <> 'stopped')::int
      + (select count(*) from billing_events where status in ('pending', 'unresolved'))::int
      + (select count(*) from users where entitlement_due_at < now())::int
      + (select count(*) from instances where gone_at is null)::int as count`
  if (busy?.count !== 0) return false
  if ([...cloud.instances.values()].some(({ endedAt }) => endedAt === null)) return false
  if ((await listLocalRelays(relayFolderOf(dataDir))).length > 0) return false
  return (await listOpenSessionWorkflows(temporal)).length === 0
}
