/** Relay sessions as operators see and move them. Every act of theirs is an audit entry. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { audit } from '../db/audit.ts'
import {
  listRelaySessions,
  type RelaySessionRow,
  type RelayState,
  recordCommand,
  relaySessionById,
  transitionsOf,
} from '../db/relay-sessions.ts'
import { isTemporalOutage } from '../platform/temporal.ts'
import { type RelaySessionSnapshot, relaySessionWorkflowId } from '../workflows/messages.ts'
import { Refusal } from './refusals.ts'
import { presentSession, SessionView } from './relay-session-view.ts'
import { ok, route } from './route.ts'
import { id, storable, timestamp } from './schemas.ts'
import type { Services } from './services.ts'

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
  user_id: row.user_id,
  instance_id: row.instance_id,
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
        from: row.from_state,
        to: row.to_state,
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
        userId: session.user_id,
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
  summary: 'Make one of the five moves by hand',
  caller: 'operator',
  params: ById,
  body: z.object({ to: State }),
  answers: { 200: z.object({ session: OperatorSession }) },
  refuses: ['not_found', 'invalid_transition'],
  handle: async ({ params, body, ip }, { sql, actors }) => {
    const session = await existing(params.id, sql)
    const asked = session.state === 'stopped' ? 'ended' : askForMove(session, body.to, actors)
    const outcome = await Promise.race([asked, sleep(actorMillisMax, 'late' as const, { ref: false })])
    // Only the actor can tell whether the move is legal, so without it there is no answer.
    if (outcome === 'late' || outcome === 'away')
      throw new Refusal('temporarily_unavailable', undefined, { 'Retry-After': '5' })
    if (outcome !== 'answered') throw new Refusal('invalid_transition')
    await audit(sql, {
      actor: 'operator',
      action: 'session_moved',
      userId: session.user_id,
      ip,
      detail: { session_id: params.id, to: body.to },
    })
    return ok({ session: presentForOperator(await existing(params.id, sql)) })
  },
})

async function askForMove(session: RelaySessionRow, to: RelayState, actors: Services['actors']) {
  try {
    if (session.command_delivered_seq === 0) await actors.deliver(session)
    return (await actors.transition(session.id, to)).type
  } catch (error) {
    if (isTemporalOutage(error)) return 'away'
    throw error
  }
}

async function existing(sessionId: string, sql: Services['sql']): Promise<RelaySessionRow> {
  const session = await relaySessionById(sql, sessionId)
  if (!session) throw new Refusal('not_found')
  return session
}
