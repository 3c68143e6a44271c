/**
 * The plugin's login (after RFC 8628): the plugin begins it and polls, a person decides it in the browser. Open to someone
 * who sends their own link to a victim, hence the code shown on both ends, the origin shown, and an approval of its own.
 */
import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import { areAuthSessionsAlive } from '../../db/auth-sessions.ts'
import type { Client } from '../../db/clients.ts'
import type { Sql } from '../../db/connection.ts'
import {
  consumeLoginAttempt,
  decideLoginAttempt,
  findLoginAttempt,
  insertLoginAttempt,
  type LoginAttempt,
  lockApprover,
  lockLoginAttempt,
  lockLoginAttemptByPollToken,
  loginAttemptSeconds,
  pollSecondsMin,
  recordPoll,
} from '../../db/login-attempts.ts'
import { lockCredentials } from '../../db/users.ts'
import { Refusal } from '../http/refusals.ts'
import { created, noContent, ok, type Request, route } from '../http/route.ts'
import { id, timestamp } from '../http/schemas.ts'
import type { User } from '../identity/access-tokens.ts'
import type { Services } from '../services.ts'
import { hashOfToken, newSecretToken, openAuthSession, TokenSet, tokenSet } from './auth-sessions.ts'

/** How often a plugin is asked to poll. */
const pollSeconds = 2
const clientNameMax = 64

/** The plugin's own name for itself, to be read by a person: without characters that hide, reorder, control or show nothing. */
const ClientName = z
  .string()
  .describe(`What the approval page calls the plugin: 1 to ${clientNameMax} characters.`)
  .transform((text) => text.replaceAll(/[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu, '').trim())
  .refine((text) => text !== '' && [...text].length <= clientNameMax, `is not 1 to ${clientNameMax} characters`)

export const start = route({
  method: 'POST',
  path: '/auth/plugin/login/start',
  summary: 'Begin a login that a person approves in the browser',
  caller: 'none',
  limit: 'plugin_start',
  secret: true,
  body: z.object({ client_name: ClientName.default('plugin') }),
  answers: {
    201: z.object({
      login_attempt_id: id,
      authorize_url: z.url(),
      poll_token: z.string(),
      user_code: z.string(),
      expires_in: z.int(),
      interval: z.int(),
    }),
  },
  refuses: [],
  handle: async ({ body, ip, userAgent }, { config, sql }) => {
    const pollToken = newSecretToken()
    const userCode = newUserCode()
    const attemptId = await insertLoginAttempt(sql, {
      pollTokenHash: hashOfToken(pollToken),
      userCode,
      clientName: body.client_name,
      ip,
      userAgent,
    })
    return created({
      login_attempt_id: attemptId,
      authorize_url: `${config.siteUrl}/login?attempt=${attemptId}`,
      poll_token: pollToken,
      user_code: userCode,
      expires_in: loginAttemptSeconds,
      interval: pollSeconds,
    })
  },
})

export const poll = route({
  method: 'POST',
  path: '/auth/plugin/login/poll',
  summary: 'Ask whether the login was decided; answers its tokens exactly once',
  caller: 'none',
  limit: 'plugin_poll',
  secret: true,
  body: z.object({ login_attempt_id: z.string(), poll_token: z.string() }),
  answers: {
    200: z.discriminatedUnion('status', [
      z.object({ status: z.literal('pending'), interval: z.int() }),
      TokenSet.extend({ status: z.literal('complete') }),
    ]),
  },
  refuses: ['not_found', 'attempt_denied', 'attempt_expired', 'attempt_consumed', 'account_disabled'],
  handle: async ({ body, ip, userAgent }, services) => {
    const attemptId = id.safeParse(body.login_attempt_id)
    if (!attemptId.success) throw new Refusal('not_found')
    const opened = await services.sql.begin(async (tx) => {
      const pollTokenHash = hashOfToken(body.poll_token)
      const approverId = await lockApprover(tx, attemptId.data, pollTokenHash)
      const approval = approvalOf(await lockLoginAttemptByPollToken(tx, attemptId.data, pollTokenHash))
      // One that was approved this very moment, by an account that is not held, is there for the next poll.
      if (approval === 'pending' || approval.userId !== approverId) return recordPoll(tx, attemptId.data)
      await consumeLoginAttempt(tx, attemptId.data)
      return openAuthSession(tx, { ...approval, ip, userAgent })
    })
    if (!opened) return ok({ status: 'pending', interval: pollSeconds })
    return ok({ status: 'complete', ...(await tokenSet(services, opened)) })
  },
})

/** Whom the attempt signs in as what, or that nobody decided it yet; refuses everything else. */
function approvalOf(attempt: LoginAttempt | undefined): 'pending' | { userId: string; client: Client } {
  if (!attempt) throw new Refusal('not_found')
  if (attempt.isExpired) throw new Refusal('attempt_expired')
  if (attempt.status === 'consumed') throw new Refusal('attempt_consumed')
  if (attempt.status === 'denied') throw new Refusal('attempt_denied')
  if (attempt.status === 'approved' && attempt.userId) return { userId: attempt.userId, client: pluginOf(attempt) }
  // Only a poll that would go on waiting can come too soon: one that ends the waiting is never put off.
  if (attempt.wasJustPolled) throw tooSoon()
  return 'pending'
}

const pluginOf = ({ clientName }: LoginAttempt): Client => ({ kind: 'plugin', name: clientName })

const tooSoon = () =>
  new Refusal('rate_limited', {
    message: `Poll every ${pollSeconds} seconds.`,
    headers: {
      'Retry-After': String(pollSecondsMin),
      'RateLimit-Policy': `"attempt";q=1;w=${pollSecondsMin}`,
      RateLimit: `"attempt";r=0;t=${pollSecondsMin}`,
    },
  })

export const read = route({
  method: 'GET',
  path: '/auth/plugin/login/attempts/{id}',
  summary: 'What a person must see before deciding a login',
  caller: 'user',
  params: z.object({ id }),
  answers: {
    200: z.object({
      login_attempt_id: id,
      status: z.enum(['pending', 'approved', 'denied', 'consumed', 'expired']),
      user_code: z.string(),
      client_name: z.string(),
      ip: z.string(),
      user_agent: z.string(),
      created_at: timestamp,
      expires_at: timestamp,
    }),
  },
  refuses: ['not_found'],
  handle: async ({ caller, params }, { sql }) =>
    ok(present(visible(await findLoginAttempt(sql, params.id), caller.userId))),
})

const present = (attempt: LoginAttempt) => ({
  login_attempt_id: attempt.id,
  status: attempt.isExpired ? ('expired' as const) : attempt.status,
  user_code: attempt.userCode,
  client_name: attempt.clientName,
  ip: attempt.ip,
  user_agent: attempt.userAgent,
  created_at: attempt.createdAt.toISOString(),
  expires_at: attempt.expiresAt.toISOString(),
})

/** Whoever has the link may look and decide; once someone has, it is theirs and nobody else's. */
function visible(attempt: LoginAttempt | undefined, userId: string): LoginAttempt {
  if (!attempt || (attempt.userId !== null && attempt.userId !== userId)) throw new Refusal('not_found')
  return attempt
}

const decisionParts = {
  method: 'POST',
  caller: 'user',
  params: z.object({ id }),
  answers: { 204: null },
} as const

export const approve = route({
  ...decisionParts,
  path: '/auth/plugin/login/attempts/{id}/approve',
  summary: 'Let the plugin sign in to this account. Safe to repeat',
  refuses: ['not_found', 'attempt_denied', 'attempt_expired'],
  handle: (request, services) =>
    decide('approved', request, services, ({ status }) => {
      if (status === 'denied') throw new Refusal('attempt_denied')
      return status === 'pending'
    }),
})

export const deny = route({
  ...decisionParts,
  path: '/auth/plugin/login/attempts/{id}/deny',
  summary: 'Keep the plugin out, also after an approval that it has not used yet. Safe to repeat',
  refuses: ['not_found', 'attempt_consumed', 'attempt_expired'],
  handle: (request, services) =>
    decide('denied', request, services, ({ status }) => {
      if (status === 'consumed') throw new Refusal('attempt_consumed')
      return status !== 'denied'
    }),
})

/** @param isNews whether the decision changes the attempt; throws when it comes too late. */
async function decide(
  status: 'approved' | 'denied',
  { caller, params, ip }: Pick<Request<'user', { id: string }, unknown, unknown>, 'caller' | 'params' | 'ip'>,
  { sql }: Services,
  isNews: (attempt: LoginAttempt) => boolean,
) {
  await sql.begin(async (tx) => {
    await holdSignIn(tx, caller)
    const attempt = visible(await lockLoginAttempt(tx, params.id), caller.userId)
    if (attempt.isExpired) throw new Refusal('attempt_expired')
    if (!isNews(attempt)) return
    await decideLoginAttempt(tx, attempt.id, { status, userId: caller.userId })
    await recordAuditEntry(tx, {
      initiator: 'user',
      action: `plugin_login_${status}`,
      userId: caller.userId,
      ip,
      client: pluginOf(attempt),
      detail: { login_attempt_id: attempt.id, plugin_ip: attempt.ip },
    })
  })
  return noContent()
}

/** A sign-in that ended since the request came decides nothing: what it approves now would outlive the end of all access. */
async function holdSignIn(sql: Sql, caller: User): Promise<void> {
  await lockCredentials(sql, caller.userId)
  const [alive] = await areAuthSessionsAlive(sql, [caller])
  if (!alive) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })
}

/** Without the pairs that are easily taken for each other: 0 O, 1 I L, 2 Z, 5 S, 8 B, U V; the digit or the letter stays. */
const codeCharacters = 'ABCDEFGHJKMNPQRTVWXY2345679'

const newUserCode = (): string => {
  const half = () => Array.from({ length: 4 }, () => codeCharacters[randomInt(codeCharacters.length)]).join('')
  return `${half()}-${half()}`
}
