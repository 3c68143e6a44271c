/** Operators' access to relay sessions. Each operation is recorded in the audit trail. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import type { Database, Sql } from '../../../db/connection.ts'
import { recordCommand } from '../../../db/relay/commands.ts'
import { findIngestSummary } from '../../../db/relay/health.ts'
import { findSessionRecord } from '../../../db/relay/history.ts'
import {
  isOperatorRequestDone,
  recordOperatorRequest,
  withdrawOperatorRequest,
} from '../../../db/relay/operator-requests.ts'
import {
  findOperatorSessionRow,
  findRelaySession,
  listRelaySessions,
  listTransitions,
  type OperatorSessionRow,
  type RelaySessionRow,
} from '../../../db/relay/sessions.ts'
import { listStreamEvents } from '../../../db/relay/stream-events.ts'
import { type RelayState, relayStates } from '../../../domain/relay/session.ts'
import { isTemporalOutage, workflowUrl } from '../../../platform/temporal.ts'
import { type RelaySessionSnapshot, relaySessionWorkflowId } from '../../../workflows/messages.ts'
import { pageOf } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, storableText, timestamp } from '../../http/schemas.ts'
import type { Services } from '../../services.ts'
import { IngestSummaryView, presentIngestSummary } from '../../views/ingest-summary.ts'
import { presentRecentBitrate, RecentBitrate } from '../../views/recent-bitrate.ts'
import { presentSession, type SessionLimits, SessionView } from '../../views/relay-session.ts'
import { presentTransition, TransitionView } from '../../views/relay-transition.ts'
import { presentStreamEvent, StreamEventView } from '../../views/stream-event.ts'
import { route } from '../route.ts'
import { maskedEmail, PublicReason, publicReasonDetail, Reason, reasonDetail } from '../schemas.ts'

const ById = z.object({ id })
const State = z.enum(relayStates)
export const OperatorSession = SessionView.extend({
  user_id: id,
  masked_email: maskedEmail,
  instance_id: z.string().nullable(),
}).meta({ id: 'OperatorRelaySession' })
const pageSize = 100
/** The longest wait for the result of a command or a transition, in milliseconds. */
const workflowMillisMax = 5000
/**
 * The longest wait for a workflow's snapshot, in milliseconds: without a worker the rest of the answer is still useful.
 */
const snapshotMillisMax = 2000

/** A session without its secrets: an operator can inspect it but not connect to it. */
export const presentForOperator = (
  row: OperatorSessionRow,
  limits: SessionLimits,
): z.infer<typeof OperatorSession> => ({
  ...presentSession(row, limits),
  user_id: row.userId,
  masked_email: row.maskedEmail,
  instance_id: row.instanceId,
})

export const listSessions = route.operator({
  id: 'listAllRelaySessions',
  summary: 'List relay sessions of all accounts',
  description: 'Relay sessions of all accounts, newest first, 100 a page, without secrets.',
  query: z.object({
    state: State.optional(),
    region: storableText(32).optional(),
    user_id: id.optional(),
    cursor: id.optional(),
  }),
  answers: { 200: z.object({ sessions: z.array(OperatorSession), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql, config }) => {
    const filter = { state: query.state, region: query.region, userId: query.user_id, after: query.cursor }
    const rows = await listRelaySessions(sql, filter, pageSize + 1)
    const presentRow = (row: OperatorSessionRow) => presentForOperator(row, config.relay)
    const { items: sessions, next_cursor } = pageOf(rows, { size: pageSize, presentRow, cursorOf: (row) => row.id })
    return ok({ sessions, next_cursor })
  },
})

export const showSession = route.operator({
  id: 'inspectRelaySession',
  summary: 'Inspect a relay session',
  description:
    'The row of a session, the snapshot of its workflow (null if it does not answer in time), its transitions, and the address of the workflow in the Temporal UI.',
  params: ById,
  answers: {
    200: z.object({
      session: OperatorSession.extend({ ingest_summary: IngestSummaryView.nullable() }),
      live: z
        .object({
          state: State,
          reason: z.string(),
          version: z.int(),
          command_seq: z.int(),
          instance_id: z.string().nullable(),
          deadline_at: timestamp.nullable(),
          longest_at: timestamp,
        })
        .nullable(),
      transitions: z.array(TransitionView),
      stream_events: z.array(StreamEventView),
      recent_bitrate: RecentBitrate,
      workflow_id: z.string(),
      temporal_ui_url: z.string(),
    }),
  },
  refuses: ['not_found'],
  handle: async ({ params }, services) => {
    const { sql, config, watched } = services
    void watched.watch({ sessionIds: [params.id], userIds: [] })
    const session = await findOperatorSessionRow(sql, params.id)
    if (!session) throw new Refusal('not_found')
    const [transitions, streamEvents, ingest, record, live] = await Promise.all([
      listTransitions(sql, params.id),
      listStreamEvents(sql, params.id),
      findIngestSummary(sql, params.id),
      findSessionRecord(sql, session.userId, params.id),
      liveView(params.id, services),
    ])
    const workflowId = relaySessionWorkflowId(params.id)
    return ok({
      session: {
        ...presentForOperator(session, config.relay),
        ingest_summary: ingest ? presentIngestSummary(ingest) : null,
      },
      live,
      transitions: transitions.map(presentTransition),
      stream_events: streamEvents.map(presentStreamEvent),
      recent_bitrate: record ? presentRecentBitrate(record) : [],
      workflow_id: workflowId,
      temporal_ui_url: workflowUrl(config.temporal, workflowId),
    })
  },
})

/** The workflow's snapshot; null when it is not available in time. */
async function liveView(sessionId: string, { relaySessions, log }: Services) {
  const queried = relaySessions.snapshot(sessionId).catch((error: unknown) => {
    log.warn({ err: error }, 'a relay session workflow did not answer a query')
    return undefined
  })
  const snapshot = await Promise.race([queried, sleep(snapshotMillisMax, undefined, { ref: false })])
  return snapshot ? presentSnapshot(snapshot) : null
}

const presentSnapshot = (snapshot: RelaySessionSnapshot) => ({
  state: snapshot.state,
  reason: snapshot.reason,
  version: snapshot.version,
  command_seq: snapshot.commandSeq,
  instance_id: snapshot.instanceId,
  deadline_at: snapshot.deadlineAt === null ? null : new Date(snapshot.deadlineAt).toISOString(),
  longest_at: new Date(snapshot.maxDurationAt).toISOString(),
})

export const disconnect = route.operator({
  id: 'disconnectRelaySession',
  summary: 'Disconnect a relay session',
  description: 'Ends a session at once, and for good. A stopped session is returned as it is. Safe to repeat.',
  params: ById,
  body: z.object({ reason: storableText(500), public_reason: PublicReason }),
  answers: { 200: z.object({ session: OperatorSession }) },
  refuses: ['not_found'],
  handle: async ({ params, body, ip }, { sql, config, deliveries }) => {
    const commanded = await sql.begin(async (tx) => {
      const session = await findRelaySession(tx, params.id)
      if (!session) throw new Refusal('not_found')
      await recordAuditEntry(tx, {
        initiator: 'operator',
        action: 'session_disconnected',
        userId: session.userId,
        ip,
        detail: { session_id: params.id, reason: body.reason, ...publicReasonDetail(body) },
      })
      return recordCommand(tx, params.id, 'disconnect', 'operator', { publicReason: body.public_reason })
    })
    if (commanded) await deliveries.sendAndWait(commanded, workflowMillisMax)
    return ok({ session: presentForOperator(await existing(params.id, sql), config.relay) })
  },
})

export const transition = route.operator({
  id: 'transitionRelaySession',
  summary: 'Make a transition by hand',
  description:
    'Makes one of the possible transitions by hand. Its workflow decides whether it is possible from the current state. After a 503 the transition has not happened and will not happen.',
  params: ById,
  body: z.object({ to: State, reason: Reason, public_reason: PublicReason }),
  answers: { 200: z.object({ session: OperatorSession }) },
  refuses: ['not_found', 'invalid_transition'],
  handle: async ({ params, body, ip }, services) => {
    const { sql, config } = services
    const requestId = randomUUID()
    const request = { sessionId: params.id, requestId, ip, ...body }
    const session = await recordTransitionRequest(sql, request)
    const outcome = await requestTransition(session, request, services)
    if (outcome !== 'done') await auditTransition(sql, session, request, `session_transition_${outcome}`)
    // Only the workflow decides whether the transition is legal, so without the workflow there is no result.
    if (outcome === 'withdrawn') throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '5' } })
    if (outcome === 'refused') throw new Refusal('invalid_transition')
    return ok({ session: presentForOperator(await existing(params.id, sql), config.relay) })
  },
})

interface OperatorTransition {
  readonly sessionId: string
  readonly to: RelayState
  readonly requestId: string
  readonly ip: string
  readonly reason?: string | undefined
  readonly public_reason?: string | undefined
}

/** Records the request first. The audit entry of its success is written together with the transition. */
const recordTransitionRequest = (sql: Database, request: OperatorTransition): Promise<RelaySessionRow> =>
  sql.begin(async (tx) => {
    const session = await existing(request.sessionId, tx)
    await auditTransition(tx, session, request, 'session_transition_requested')
    const { requestId, ip, public_reason: publicReason } = request
    await recordOperatorRequest(tx, request.sessionId, {
      id: requestId,
      ip,
      ...(publicReason === undefined ? {} : { publicReason }),
    })
    return session
  }) as Promise<RelaySessionRow>

const auditTransition = (sql: Sql, { userId }: RelaySessionRow, request: OperatorTransition, action: string) =>
  recordAuditEntry(sql, {
    initiator: 'operator',
    action,
    userId,
    ip: request.ip,
    detail: {
      session_id: request.sessionId,
      to: request.to,
      request_id: request.requestId,
      ...reasonDetail(request),
      ...publicReasonDetail(request),
    },
  })

/** A request without a result in time is withdrawn, which rules out that its transition happens later. */
async function requestTransition(
  session: RelaySessionRow,
  { to, requestId }: OperatorTransition,
  { sql, relaySessions }: Pick<Services, 'sql' | 'relaySessions'>,
): Promise<'done' | 'refused' | 'withdrawn'> {
  if (session.state === 'stopped') return 'refused'
  const updated = updateWorkflow(session, to, requestId, relaySessions)
  const result = await Promise.race([updated, sleep(workflowMillisMax, 'late' as const, { ref: false })])
  if (result === 'answered') return 'done'
  const isWithdrawn = await withdrawOperatorRequest(sql, session.id, requestId)
  if (result === 'refused' || result === 'ended') return 'refused'
  if (isWithdrawn) return 'withdrawn'
  return (await isOperatorRequestDone(sql, session, requestId)) ? 'done' : 'refused'
}

async function updateWorkflow(
  session: RelaySessionRow,
  to: RelayState,
  requestId: string,
  relaySessions: Services['relaySessions'],
): Promise<'answered' | 'ended' | 'refused' | 'unavailable'> {
  try {
    if (session.commandDeliveredSeq === 0) await relaySessions.deliver(session)
    return (await relaySessions.transition(session.id, to, requestId)).type
  } catch (error) {
    if (isTemporalOutage(error)) return 'unavailable'
    throw error
  }
}

async function existing(sessionId: string, sql: Sql): Promise<OperatorSessionRow> {
  const session = await findOperatorSessionRow(sql, sessionId)
  if (!session) throw new Refusal('not_found')
  return session
}
