/** Starting, watching and stopping relays. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { ownedRelaySession, type RelaySessionRow, recordCommand, relaySessionById } from '../../db/relay-sessions.ts'
import { type StartOutcome, startRelay } from '../../db/relay-starts.ts'
import { openStreamToken } from '../../db/sealed-tokens.ts'
import { storedStreamToken } from '../../db/users.ts'
import { rateLimitKey } from '../http/rate-limits.ts'
import { Refusal } from '../http/refusals.ts'
import { created, ok, type Reply, route } from '../http/route.ts'
import { id } from '../http/schemas.ts'
import type { Services } from '../services.ts'
import { newRelaySession } from './relay-session-tokens.ts'
import { type Audience, audienceOf, presentSession, SessionView, View } from './relay-session-view.ts'

/** How long an answer waits for the actor before it tells the session as it is, in milliseconds. */
const actorMillisMax = 2000

const ConnectionId = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
const OneSession = z.object({ session: SessionView })

export const start = route({
  method: 'POST',
  path: '/relay/start',
  summary: 'Start a relay for a connection, or get the one that it has',
  caller: 'user',
  limit: 'relay_start',
  // A replay of the same key does not count, and only the transaction knows which request is one.
  countsItself: true,
  requestHeaders: { 'Idempotency-Key': 'A UUIDv4, fresh for each new start; kept for one hour.' },
  query: View,
  body: z.object({ connection_id: ConnectionId.default('default'), region: z.string().max(32).optional() }),
  answers: { 200: OneSession, 201: OneSession },
  refuses: [
    'idempotency_key_required',
    'idempotency_key_invalid',
    'idempotency_key_reused',
    'relay_access_denied',
    'usage_exhausted',
    'relay_limit_reached',
    'capacity_exhausted',
  ],
  secret: true,
  handle: async ({ caller, body, query, header }, services) => {
    const idempotencyKey = readIdempotencyKey(header('idempotency-key'))
    const region = regionNamed(body.region, services)
    const outcome = await startRelay(services.sql, {
      userId: caller.userId,
      authSessionId: caller.authSessionId,
      idempotencyKey,
      requestHash: createHash('sha256')
        .update(JSON.stringify([body.connection_id, body.region ?? null]))
        .digest(),
      connectionId: body.connection_id,
      region: region.region,
      regionCapacity: region.capacity,
      rateLimitKey: rateLimitKey('relay_start', caller.userId),
      rateLimit: services.config.rateLimits.relay_start,
      timeBank: services.config.timeBank,
      ...newRelaySession(services.sealing),
    })
    return answerStart(outcome, audienceOf(query), services)
  },
})

async function answerStart(outcome: StartOutcome, audience: Audience, services: Services): Promise<Reply> {
  const { rateLimits, deliveries, sql } = services
  const headers = 'window' in outcome && outcome.window ? rateLimits.judge('relay_start', outcome.window) : {}
  switch (outcome.type) {
    case 'key_reused':
      throw new Refusal('idempotency_key_reused')
    case 'signed_out':
      throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })
    case 'rate_limited':
      throw new Refusal('rate_limited')
    case 'denied':
      throw new Refusal(
        outcome.entitlement.reasonCode === 'usage_exhausted' ? 'usage_exhausted' : 'relay_access_denied',
        { headers },
      )
    case 'limit_reached':
      throw new Refusal('relay_limit_reached', { headers })
    case 'region_full':
      throw new Refusal('capacity_exhausted', { headers: { ...headers, 'Retry-After': '30' } })
    default: {
      for (const session of outcome.toDeliver) {
        // Coming back from a stop is worth a moment's wait, so that the answer shows it; a new start is not.
        if (outcome.type === 'existing' && session.id === outcome.session.id)
          await deliveries.sendAndWait(session, actorMillisMax)
        else deliveries.send(session)
      }
      const isResumed = outcome.type === 'existing' && outcome.toDeliver.length > 0
      const session = isResumed
        ? ((await relaySessionById(sql, outcome.session.id)) ?? outcome.session)
        : outcome.session
      const view = { session: await presentFor(services, session, audience) }
      return { ...(outcome.type === 'reserved' ? created(view) : ok(view)), headers }
    }
  }
}

/** One session for its owner, or for the dock. */
async function presentFor({ sql, sealing }: Services, session: RelaySessionRow, audience: Audience) {
  if (audience === 'dock') return presentSession(session)
  const stored = await storedStreamToken(sql, session.userId)
  return presentSession(session, { sealing, streamToken: openStreamToken(sealing, session.userId, stored) })
}

const uuidV4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i

/** Bare, or in double quotes as the header's draft standard has it. */
function readIdempotencyKey(text: string | undefined): string {
  if (text === undefined) throw new Refusal('idempotency_key_required')
  const key = /^"(.*)"$/.exec(text)?.[1] ?? text
  if (!uuidV4.test(key)) throw new Refusal('idempotency_key_invalid')
  return key.toLowerCase()
}

function regionNamed(name: string | undefined, { config }: Services) {
  const region =
    name === undefined
      ? (config.regions.find((one) => one.default) ?? config.regions[0])
      : config.regions.find((one) => one.region === name)
  if (region) return region
  throw new Refusal('invalid_request', { message: 'There is no such region: GET /api/v1/relay/manifest names them.' })
}

export const active = route({
  method: 'GET',
  path: '/relay/active',
  summary: 'The live session of a connection, or the oldest one, and all others',
  caller: 'user',
  limit: 'relay_active',
  query: View.extend({ connection_id: ConnectionId.optional() }),
  answers: { 200: z.object({ session: SessionView.nullable(), sessions: z.array(SessionView) }) },
  refuses: [],
  secret: true,
  handle: async ({ caller, query }, { liveRelays, sealing }) => {
    const { streamToken: stored, sessions } = await liveRelays(caller.userId)
    const isForOwner = audienceOf(query) === 'owner' && sessions.length > 0
    const secrets = isForOwner ? { sealing, streamToken: openStreamToken(sealing, caller.userId, stored) } : undefined
    const views = sessions.map((row) => presentSession(row, secrets))
    const session =
      query.connection_id === undefined ? views[0] : views.find((one) => one.connection_id === query.connection_id)
    return ok({ session: session ?? null, sessions: views })
  },
})

export const stop = route({
  method: 'POST',
  path: '/relay/stop',
  summary: 'Stop a relay; a stopped one is answered as it is',
  caller: 'user',
  limit: 'relay_stop',
  query: View,
  body: z
    .object({
      session_id: id.optional(),
      connection_id: ConnectionId.optional(),
      immediate: z.boolean().default(false),
    })
    .refine(
      (body) => body.session_id !== undefined || body.connection_id !== undefined,
      'name a session_id or a connection_id',
    ),
  answers: { 200: OneSession },
  refuses: ['not_found'],
  secret: true,
  handle: async ({ caller, body, query }, services) => {
    const { sql, deliveries } = services
    const owned = await ownedRelaySession(
      sql,
      caller.userId,
      body.session_id === undefined ? { connectionId: body.connection_id ?? '' } : { sessionId: body.session_id },
    )
    if (!owned) throw new Refusal('not_found')
    const asked = await recordCommand(sql, owned.id, body.immediate ? 'stop_now' : 'stop', 'user')
    if (asked) await deliveries.sendAndWait(asked, actorMillisMax)
    const session = asked
      ? await relaySessionById(sql, owned.id)
      : owned.state === 'stopped'
        ? owned
        : await relaySessionById(sql, owned.id)
    return ok({ session: await presentFor(services, session ?? owned, audienceOf(query)) })
  },
})
