/** Relay sessions as operators see and move them. Every act of theirs is an audit entry. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { audit } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/connection.ts'
import {
  isRequestMade,
  listRelaySessions,
  type RelaySessionRow,
  type RelayState,
  recordCommand,
  recordOperatorRequest,
  relaySessionById,
  transitionsOf,
  withdrawOperatorRequest,
} from '../../db/relay-sessions.ts'
import { isTemporalOutage } from '../../platform/temporal.ts'
import { type RelaySessionSnapshot, relaySessionWorkflowId } from '../../workflows/messages.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id, storable, timestamp } from '../http/schemas.ts'
import type { Services } from '../services.ts'
import { presentSession, SessionView } from './relay-session-view.ts'

const ById = z.object({ id })
const State = z.enum(['provisioning', 'active', 'grace', 'stopped'])
export const OperatorSession = SessionView.extend({ user_id: id, instance_id: z.string().nullable() })
const pageSize = 100
const actorMillisMax = 5000
/** An operator who looks while no worker runs wants the rest of the page soon. */
const lookMillisMax = 2000

/** Operators look at sessions without being able to join them. */
export const presentForOperator = (row: RelaySessionRow): z.infer<typeof OperatorSession> => ({
  ...presentSession(row),
  user_id: row.userId,
  instance_id: row.instanceId,
})

export const listSessions = route({
  method: 'GET',
  path: '/admin/sessions',
  summary: 'Relay sessions, newest first',
  caller: 'operator',
  query: z.object({
    state: State.optional(),
    region: storable(32).optional(),
    user_id: id.optional(),
    cursor: id.optional(),
  }),
  answers: { 200: z.object({ sessions: z.array(OperatorSession), next_cursor: id.nullable() }) },
  refuses: [],
  handle: async ({ query }, { sql }) => {
    const filter = { state: query.state, region: query.region, userId: query.user_id, after: query.cursor }
    const rows = await listRelaySessions(sql, filter, pageSize + 1)
    const page = rows.slice(0, pageSize)
    return ok({
      sessions: page.map(presentForOperator),
      next_cursor: rows.length > pageSize ? (page.at(-1)?.id ?? null) : null,
    })
  },
})

export const showSession = route({
  method: 'GET',
  path: '/admin/sessions/{id}',
  summary: 'One session: its row, what its actor says, its moves',
  caller: 'operator',
  params: ById,
  answers: {
    200: z.object({
      session: OperatorSession,
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
      transitions: z.array(z.object({ from: State, to: State, reason: z.string(), actor: z.string(), at: timestamp })),
      workflow_id: z.string(),
      temporal_ui_url: z.string(),
    }),
  },
  refuses: ['not_found'],
  handle: async ({ params }, services) => {
    const { sql, config } = services
    const session = await relaySessionById(sql, params.id)
    if (!session) throw new Refusal('not_found')
    const [transitions, live] = await Promise.all([transitionsOf(sql, params.id), liveView(params.id, services)])
    const workflowId = relaySessionWorkflowId(params.id)
    return ok({
      session: presentForOperator(session),
      live,
      transitions: transitions.map((row) => ({
        from: row.fromState,
        to: row.toState,
        reason: row.reason,
        actor: row.actor,
        at: row.at.toISOString(),
      })),
      workflow_id: workflowId,
      temporal_ui_url: `${config.temporal.uiUrl}/namespaces/${config.temporal.namespace}/workflows/${encodeURIComponent(workflowId)}`,
    })
  },
})

/** What the actor itself says; null when it can't be asked, since the rest of the answer is worth having all the same. */
async function liveView(sessionId: string, { actors, log }: Services) {
  const asked = actors.snapshot(sessionId).catch((error: unknown) => {
    log.warn({ err: error }, 'an actor could not be asked')
    return undefined
  })
  const snapshot = await Promise.race([asked, sleep(lookMillisMax, undefined, { ref: false })])
  return snapshot ? presentSnapshot(snapshot) : null
}

const presentSnapshot = (snapshot: RelaySessionSnapshot) => ({
  state: snapshot.state,
  reason: snapshot.reason,
  version: snapshot.version,
  command_seq: snapshot.commandSeq,
  instance_id: snapshot.instanceId,
  deadline_at: snapshot.deadlineAt === null ? null : new Date(snapshot.deadlineAt).toISOString(),
  longest_at: new Date(snapshot.longestAt).toISOString(),
})

export const disconnect = route({
  method: 'POST',
  path: '/admin/sessions/{id}/disconnect',
  summary: 'End a session at once; a stopped one is answered as it is',
  caller: 'operator',
  params: ById,
  body: z.object({ reason: storable(500) }),
  answers: { 200: z.object({ session: OperatorSession }) },
  refuses: ['not_found'],
  handle: async ({ params, body, ip }, { sql, deliveries }) => {
    const asked = await sql.begin(async (tx) => {
      const session = await relaySessionById(tx, params.id)
      if (!session) throw new Refusal('not_found')
      await audit(tx, {
        actor: 'operator',
        action: 'session_disconnected',
        userId: session.userId,
        ip,
        detail: { session_id: params.id, reason: body.reason },
      })
      return recordCommand(tx, params.id, 'disconnect', 'operator')
    })
    if (asked) await deliveries.sendAndWait(asked, actorMillisMax)
    return ok({ session: presentForOperator(await existing(params.id, sql)) })
  },
})

export const transition = route({
  method: 'POST',
  path: '/admin/sessions/{id}/transition',
  summary: 'Make one of the five moves by hand. After a 503 it was not made and will not be',
  caller: 'operator',
  params: ById,
  body: z.object({ to: State }),
  answers: { 200: z.object({ session: OperatorSession }) },
  refuses: ['not_found', 'invalid_transition'],
  handle: async ({ params, body, ip }, services) => {
    const { sql } = services
    const requestId = randomUUID()
    const act = { sessionId: params.id, to: body.to, requestId, ip }
    const session = await requestTransition(sql, act)
    const outcome = await transitionOutcome(session, act, services)
    if (outcome !== 'made') await auditTransition(sql, session, act, `session_transition_${outcome}`)
    // Only the workflow can tell whether the transition is legal, so without it there is no answer.
    if (outcome === 'withdrawn') throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '5' } })
    if (outcome === 'refused') throw new Refusal('invalid_transition')
    return ok({ session: presentForOperator(await existing(params.id, sql)) })
  },
})

interface TransitionAct {
  readonly sessionId: string
  readonly to: RelayState
  readonly requestId: string
  readonly ip: string
}

/** Keeps the request before anything is done about it; the entry of its success is part of the transition itself. */
const requestTransition = (sql: Database, act: TransitionAct): Promise<RelaySessionRow> =>
  sql.begin(async (tx) => {
    const session = await existing(act.sessionId, tx)
    await auditTransition(tx, session, act, 'session_transition_requested')
    await recordOperatorRequest(tx, act.sessionId, { id: act.requestId, ip: act.ip })
    return session
  }) as Promise<RelaySessionRow>

const auditTransition = (sql: Sql, { userId }: RelaySessionRow, act: TransitionAct, action: string) =>
  audit(sql, {
    actor: 'operator',
    action,
    userId,
    ip: act.ip,
    detail: { session_id: act.sessionId, to: act.to, request_id: act.requestId },
  })

/** A request without an answer in time is withdrawn: then it is certain that nothing comes of it later. */
async function transitionOutcome(
  session: RelaySessionRow,
  { to, requestId }: TransitionAct,
  { sql, actors }: Pick<Services, 'sql' | 'actors'>,
): Promise<'made' | 'refused' | 'withdrawn'> {
  if (session.state === 'stopped') return 'refused'
  const asked = askForTransition(session, to, requestId, actors)
  const answer = await Promise.race([asked, sleep(actorMillisMax, 'late' as const, { ref: false })])
  if (answer === 'answered') return 'made'
  const isWithdrawn = await withdrawOperatorRequest(sql, session.id, requestId)
  if (answer === 'refused' || answer === 'ended') return 'refused'
  if (isWithdrawn) return 'withdrawn'
  return (await isRequestMade(sql, session, requestId)) ? 'made' : 'refused'
}

async function askForTransition(
  session: RelaySessionRow,
  to: RelayState,
  requestId: string,
  actors: Services['actors'],
): Promise<'answered' | 'ended' | 'refused' | 'away'> {
  try {
    if (session.commandDeliveredSeq === 0) await actors.deliver(session)
    return (await actors.transition(session.id, to, requestId)).type
  } catch (error) {
    if (isTemporalOutage(error)) return 'away'
    throw error
  }
}

async function existing(sessionId: string, sql: Sql): Promise<RelaySessionRow> {
  const session = await relaySessionById(sql, sessionId)
  if (!session) throw new Refusal('not_found')
  return session
}
