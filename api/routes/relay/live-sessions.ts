/** Routes that start, show and stop relays. */

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Entitlement } from '../../../db/billing/entitlements.ts'
import { hashTrialNetwork } from '../../../db/billing/trials.ts'
import { getStoredStreamToken } from '../../../db/identity/users.ts'
import { recordUserCommand } from '../../../db/relay/commands.ts'
import {
  findOwnedSession,
  findRelaySession,
  type RelaySessionRow,
  type SessionAddress,
  type ShownSessionRow,
  withoutIngest,
} from '../../../db/relay/sessions.ts'
import { openStreamToken, type StoredStreamToken } from '../../../db/sealed-tokens.ts'
import { type StartOutcome, startRelay } from '../../../db/transactions/start-relay.ts'
import type { RequestedRegion } from '../../../domain/fleet/regions.ts'
import { warmReportSecondsMax } from '../../../domain/fleet/warm-instances.ts'
import { isInGraceFor } from '../../../domain/relay/session.ts'
import { isRandomUuid } from '../../../domain/uuid.ts'
import { autoRegion } from '../../../platform/config/regions.ts'
import { type AppCaller, isApp } from '../../apps/app-access-tokens.ts'
import { routedPrefix } from '../../http/ip-networks.ts'
import { rateLimitKey } from '../../http/rate-limits.ts'
import { invalidToken, Refusal, type RefusalCode } from '../../http/refusals.ts'
import { created, ok, type Reply } from '../../http/replies.ts'
import { id } from '../../http/schemas.ts'
import type { TokenUser } from '../../identity/access-tokens.ts'
import { createRelaySessionTokens } from '../../relay-session-tokens.ts'
import type { Services } from '../../services.ts'
import { type Audience, audienceOf, presentSession, SessionView, View } from '../../views/relay-session.ts'
import {
  activeSession,
  provisioningSession,
  stoppedSession,
  stoppingSession,
} from '../../views/relay-session-examples.ts'
import { route } from '../route.ts'
import { ConnectionId } from '../schemas.ts'

/**
 * The longest wait for a workflow to carry out a command, in milliseconds. The reply then shows the session as it is.
 */
const workflowMillisMax = 2000

const OneSession = z.object({ session: SessionView })

export const start = route.userOrApp({
  id: 'startRelay',
  summary: 'Start a relay',
  description:
    'Starts a relay for a connection, or returns its live session: one that was stopped a moment ago continues.\n\nSend a new `Idempotency-Key` for each start, and the same one to repeat a start whose reply was lost: within an hour it returns the session as it is now and starts nothing. A refused start does not use the key up.\n\nRefused when the plan does not include relays (`relay_access_denied`), the included time is used up (`usage_exhausted`), all relays of the plan are in use (`relay_limit_reached`), or the region is full (`capacity_exhausted`).\n\nWhere the service offers a free test time, an account without a plan is also refused while no mail of ours has verified its address (`email_not_verified`), once the time is used up (`trial_ended`), or when several test times have begun in its network within a day (`trial_network_limit`). Such a start takes none of the last places of a region (`trial_region_busy`).',
  requestHeaders: {
    'Idempotency-Key': {
      description: 'A UUIDv4, new for each start. It is stored for one hour.',
      example: '9b2f6c1e-4d8a-4f3b-a7e5-0c1d2e3f4a5b',
    },
  },
  query: View,
  body: z.object({
    connection_id: ConnectionId.default('default'),
    region: z
      .string()
      .max(32)
      .optional()
      .describe(`A region of the manifest, or \`${autoRegion}\` for the one with the most free places.`),
  }),
  answers: { 200: OneSession, 201: OneSession },
  refuses: [
    'idempotency_key_required',
    'idempotency_key_invalid',
    'idempotency_key_reused',
    'relay_access_denied',
    'usage_exhausted',
    'email_not_verified',
    'trial_ended',
    'trial_network_limit',
    'trial_region_busy',
    'relay_limit_reached',
    'connection_limit',
    'capacity_exhausted',
  ],
  secret: true,
  replyHeaders: { 200: ['Idempotent-Replayed'] },
  examples: {
    requests: {
      default: { summary: 'The default connection and region', value: {} },
      auto: { summary: 'Wherever there is room', value: { connection_id: 'phone', region: 'auto' } },
      region: { summary: 'In a region of the manifest', value: { connection_id: 'default', region: 'eu-central' } },
    },
    replies: {
      200: { live: { summary: 'The connection has a live session', value: { session: activeSession } } },
      201: { started: { summary: 'A new session', value: { session: provisioningSession } } },
    },
  },
  handle: async ({ caller, body, query, header, ip }, services) => {
    const idempotencyKey = readIdempotencyKey(header('idempotency-key'))
    const region = readRegion(body.region, services)
    const request = {
      userId: caller.userId,
      by: isApp(caller)
        ? { grantId: caller.grantId, clientId: caller.clientId }
        : { authSessionId: caller.authSessionId },
      idempotencyKey,
      requestHash: createHash('sha256')
        .update(JSON.stringify([body.connection_id, body.region ?? null]))
        .digest(),
      connectionId: body.connection_id,
      region,
      regions: services.config.regions,
      warmReportSecondsMax: warmReportSecondsMax(services.config.relay.healthTimeoutSeconds),
      rateLimitKey: rateLimitKey('relay_start', caller.userId),
      rateLimit: services.config.rateLimits.relay_start,
      timeBank: services.config.timeBank,
      networkHash: hashTrialNetwork(services.sealing, routedPrefix(ip)),
      ...createRelaySessionTokens(services.sealing),
    }
    const outcome = await services.deliveries.runStart(() => startRelay(services.sql, request))
    return answerStart(outcome, region, audienceFor(caller, query), services)
  },
})

async function answerStart(
  outcome: StartOutcome,
  region: RequestedRegion,
  audience: Audience,
  services: Services,
): Promise<Reply> {
  const window = 'window' in outcome ? outcome.window : undefined
  const headers = window ? services.rateLimits.check('relay_start', window) : {}
  switch (outcome.type) {
    case 'key_reused':
      throw new Refusal('idempotency_key_reused')
    case 'signed_out':
      throw invalidToken()
    case 'rate_limited':
      throw new Refusal('rate_limited')
    case 'denied': {
      const [code, message] = denialOf(outcome.entitlement)
      throw new Refusal(code, { headers, message })
    }
    case 'limit_reached':
      throw new Refusal('relay_limit_reached', { headers })
    case 'trial_relay_running':
      throw new Refusal('relay_limit_reached', {
        headers,
        message: 'The free test time is for one relay at a time. Stop the other one, or choose a plan.',
      })
    case 'trial_network_limit':
      throw new Refusal('trial_network_limit', { headers })
    case 'trial_region_busy':
      throw new Refusal('trial_region_busy', { headers: { ...headers, 'Retry-After': '30' } })
    case 'connection_limit':
      throw new Refusal('connection_limit', { headers })
    case 'region_full':
    case 'region_drained':
      throw new Refusal('capacity_exhausted', {
        message: capacityMessage(outcome.type, region),
        headers: { ...headers, 'Retry-After': '30' },
      })
    case 'reserved':
      for (const session of outcome.toDeliver)
        services.deliveries.send({ ...session, maskedEmail: outcome.account.maskedEmail })
      return {
        ...created({ session: presentFor(services, withoutIngest(outcome.session), audience, outcome.account) }),
        headers,
      }
    case 'existing': {
      // A relay that is lost is replaced at once, where a pause or an earlier failure delays it.
      if (isInGraceFor(outcome.session, 'health_lost'))
        services.deliveries.signal(() => services.relaySessions.wake(outcome.session.id))
      const session = await carryOut(outcome.session, outcome.toDeliver, services)
      return { ...ok({ session: presentFor(services, session, audience, outcome.account) }), headers }
    }
    case 'replayed': {
      const session = await readAgain(outcome.session, services)
      const replay = { ...headers, 'Idempotent-Replayed': 'true' }
      return { ...ok({ session: presentFor(services, session, audience, outcome.account) }), headers: replay }
    }
  }
}

/** Why the account starts no relay: a code, and a message where that of the code says too little. */
function denialOf({ reasonCode, trial }: Entitlement): readonly [code: RefusalCode, message?: string] {
  if (reasonCode === 'usage_exhausted') return ['usage_exhausted']
  if (reasonCode === 'deletion_scheduled')
    return [
      'relay_access_denied',
      'This account is going to be deleted. Restore it on the account page to start relays.',
    ]
  if (reasonCode !== 'plan_required' || trial === null) return ['relay_access_denied']
  if (trial.state === 'ended') return ['trial_ended']
  return [
    'email_not_verified',
    'Open the link that we mail to your address to use the free test time, or choose a plan.',
  ]
}

/** Delivers the commands and waits for the session's own, so that the reply shows what it caused. */
async function carryOut(
  session: RelaySessionRow,
  toDeliver: readonly RelaySessionRow[],
  services: Services,
): Promise<ShownSessionRow> {
  const { deliveries } = services
  for (const delivery of toDeliver) {
    if (delivery.id === session.id) await deliveries.sendAndWait(delivery, workflowMillisMax)
    else deliveries.send(delivery)
  }
  return readAgain(session, services)
}

const readAgain = async (session: RelaySessionRow, { sql }: Services): Promise<ShownSessionRow> =>
  (await findRelaySession(sql, session.id)) ?? withoutIngest(session)

/** Apps get the dock view only: they show relays and control them, and their users may show their screens. */
const audienceFor = (caller: TokenUser | AppCaller, query: Parameters<typeof audienceOf>[0]): Audience =>
  isApp(caller) ? 'dock' : audienceOf(query)

/** Presents one session. Only its owner sees its secrets; the dock view has none. */
function presentFor(
  { sealing, config }: Services,
  session: ShownSessionRow,
  audience: Audience,
  stored: StoredStreamToken,
) {
  if (audience === 'dock') return presentSession(session, config.relay)
  return presentSession(session, config.relay, {
    sealing,
    streamToken: openStreamToken(sealing, session.userId, stored),
    srtPassphrase: config.relay.srtPassphrase,
    relayAuthSecrets: config.relayAuthSecrets,
  })
}

/** The key may be in double quotes, as in the draft standard of the header. */
function readIdempotencyKey(text: string | undefined): string {
  if (text === undefined) throw new Refusal('idempotency_key_required')
  const key = /^"(.*)"$/.exec(text)?.[1] ?? text
  if (!isRandomUuid(key)) throw new Refusal('idempotency_key_invalid')
  return key.toLowerCase()
}

function readRegion(name: string | undefined, { config }: Services): RequestedRegion {
  if (name === undefined) return 'default'
  if (name === autoRegion) return 'auto'
  if (config.regions.some(({ region }) => region === name)) return { named: name }
  throw new Refusal('invalid_request', {
    message: `Unknown region "${name}". GET /api/v1/relay/manifest lists the regions.`,
  })
}

/** Undefined for the message of the error code. */
function capacityMessage(outcome: 'region_full' | 'region_drained', region: RequestedRegion): string | undefined {
  if (outcome === 'region_drained')
    return `The region takes no new relays for now. Choose another one, or "${autoRegion}".`
  return region === 'auto' ? 'All regions are full. Try again later.' : undefined
}

export const active = route.userOrApp({
  id: 'listLiveRelays',
  summary: 'List live relays',
  description:
    'All live sessions, oldest first, and the one of the connection that is asked for, or else the oldest. `session` is null when there is none. Clients that want each change at once use the WebSocket.',
  reads: 'live_relays',
  query: View.extend({
    connection_id: ConnectionId.optional(),
    watch: z
      .literal('1')
      .optional()
      .describe(
        'The sessions are looked at: their relays report every 2 s for the next 12 s. Sockets do it by themselves.',
      ),
  }),
  answers: { 200: z.object({ session: SessionView.nullable(), sessions: z.array(SessionView) }) },
  refuses: [],
  secret: true,
  examples: {
    replies: {
      200: {
        live: { summary: 'One live relay', value: { session: activeSession, sessions: [activeSession] } },
        none: { summary: 'No live relay', value: { session: null, sessions: [] } },
      },
    },
  },
  handle: ({ caller, query, read }, { config, sealing, watched }) => {
    if (query.watch !== undefined) void watched.watch({ sessionIds: [], userIds: [caller.userId] })
    const { streamToken: stored, sessions } = read
    const isForOwner = audienceFor(caller, query) === 'owner' && sessions.length > 0
    const { relayAuthSecrets, relay } = config
    const { srtPassphrase } = relay
    const secrets = isForOwner
      ? { sealing, streamToken: openStreamToken(sealing, caller.userId, stored), srtPassphrase, relayAuthSecrets }
      : undefined
    const views = sessions.map((row) => presentSession(row, config.relay, secrets))
    const session =
      query.connection_id === undefined
        ? views[0]
        : views.find(({ connection_id }) => connection_id === query.connection_id)
    return ok({ session: session ?? null, sessions: views })
  },
})

export const stop = route.userOrApp({
  id: 'stopRelay',
  summary: 'Stop a relay',
  description:
    'Stops the relay of a session or of a connection. It ends after a short grace, in which a start continues it, or at once with `immediate`. Safe to repeat: a stopped session is returned as it is.',
  query: View,
  body: z
    .object({
      session_id: id.optional(),
      connection_id: ConnectionId.optional(),
      immediate: z.boolean().default(false),
    })
    .refine(
      (body) => body.session_id !== undefined || body.connection_id !== undefined,
      'give a session_id or a connection_id',
    ),
  answers: { 200: OneSession },
  refuses: ['not_found'],
  secret: true,
  examples: {
    requests: {
      connection: { summary: 'By connection', value: { connection_id: 'default' } },
      immediate: {
        summary: 'A session, at once',
        value: { session_id: '8f14e45f-ceea-4f67-9d3b-2a6c1e7b5d04', immediate: true },
      },
    },
    replies: {
      200: {
        grace: { summary: 'Ends after its grace', value: { session: stoppingSession } },
        stopped: { summary: 'Has ended', value: { session: stoppedSession } },
      },
    },
  },
  handle: async ({ caller, body, query }, services) => {
    const by =
      body.session_id === undefined ? { connectionId: body.connection_id ?? '' } : { sessionId: body.session_id }
    // The account is read while the workflow carries out the command.
    const [session, stored] = await Promise.all([
      stopSession(caller, by, body.immediate ? 'stop_now' : 'stop', services),
      getStoredStreamToken(services.sql, caller.userId),
    ])
    if (!session) throw new Refusal('not_found')
    return ok({ session: presentFor(services, session, audienceFor(caller, query), stored) })
  },
})

/** @returns the session after the stop, or as it stopped before; undefined when the user has no such session. */
async function stopSession(
  caller: TokenUser | AppCaller,
  by: SessionAddress,
  command: 'stop' | 'stop_now',
  services: Services,
): Promise<ShownSessionRow | undefined> {
  const { userId } = caller
  const commanded = await recordUserCommand(services.sql, userId, by, command, caller)
  if (commanded) return carryOut(commanded, [commanded], services)
  const session = await findOwnedSession(services.sql, userId, by)
  // A live one has begun since: the connection's session had just stopped.
  return session && session.state !== 'stopped' ? stopSession(caller, by, command, services) : session
}
