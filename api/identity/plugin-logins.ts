/**
 * Plugin logins, after the device authorization grant (RFC 8628): the plugin starts an attempt and polls it, a user
 * approves or denies it in the browser. An attacker can send the link of their own attempt to a victim. Therefore the
 * plugin and the approval page show the same code, the page shows where the attempt was started, and only an explicit
 * approval counts.
 */
import { randomInt } from 'node:crypto'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Client } from '../../db/clients.ts'
import {
  consumeLoginAttempt,
  decideLoginAttempt,
  findLoginAttempt,
  insertLoginAttempt,
  type LoginAttempt,
  lockApprover,
  lockLoginAttempt,
  lockLoginAttemptByPollToken,
  pollSecondsMin,
  recordPoll,
} from '../../db/identity/login-attempts.ts'
import { lockCredentials } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { type OpenedAuthSession, openAuthSession, requireAliveAuthSession } from './auth-sessions.ts'
import { createSecretToken, hashSecretToken } from './secret-tokens.ts'
import type { Services } from './services.ts'

/** The polling interval in the responses to plugins. */
export const pollSeconds = 2

export interface StartedPluginLogin {
  readonly attemptId: string
  readonly pollToken: string
  /** Shown by the plugin and by the approval page. */
  readonly userCode: string
}

export async function startPluginLogin(
  { sql }: Services,
  plugin: { readonly clientName: string; readonly ip: string; readonly userAgent: string },
): Promise<StartedPluginLogin> {
  const pollToken = createSecretToken()
  const userCode = createUserCode()
  const attemptId = await insertLoginAttempt(sql, { ...plugin, pollTokenHash: hashSecretToken(pollToken), userCode })
  return { attemptId, pollToken, userCode }
}

/**
 * Opens the auth session of the plugin once the attempt is approved, and only once.
 * @returns undefined while the attempt is pending. Refuses with `not_found`, `attempt_denied`, `attempt_expired`,
 *   `attempt_consumed`, `account_disabled`, and `rate_limited` for polls within a second.
 */
export async function pollPluginLogin(
  { sql }: Services,
  attemptId: string,
  pollToken: string,
  { ip, userAgent }: { ip: string; userAgent: string },
): Promise<OpenedAuthSession | undefined> {
  return (await sql.begin(async (tx) => {
    const pollTokenHash = hashSecretToken(pollToken)
    const approverId = await lockApprover(tx, attemptId, pollTokenHash)
    const approval = requireApprovalOrPending(await lockLoginAttemptByPollToken(tx, attemptId, pollTokenHash))
    // If the attempt was approved between the two statements, the account is not locked. The next poll gets the tokens.
    if (approval === 'pending' || approval.userId !== approverId) return recordPoll(tx, attemptId)
    await consumeLoginAttempt(tx, attemptId)
    return openAuthSession(tx, { ...approval, ip, userAgent })
  })) as OpenedAuthSession | undefined
}

function requireApprovalOrPending(attempt: LoginAttempt | undefined): 'pending' | { userId: string; client: Client } {
  if (!attempt) throw new Refusal('not_found')
  if (attempt.isExpired) throw new Refusal('attempt_expired')
  if (attempt.status === 'consumed') throw new Refusal('attempt_consumed')
  if (attempt.status === 'denied') throw new Refusal('attempt_denied')
  if (attempt.status === 'approved' && attempt.userId) return { userId: attempt.userId, client: pluginClient(attempt) }
  // The interval limits only polls of a pending attempt: a decided one is answered at once.
  if (attempt.wasJustPolled) throw pollingTooFast()
  return 'pending'
}

const pluginClient = ({ clientName }: LoginAttempt): Client => ({ kind: 'plugin', name: clientName })

const pollingTooFast = () =>
  new Refusal('rate_limited', {
    message: `Polling too fast: poll every ${pollSeconds} seconds.`,
    headers: {
      'Retry-After': String(pollSecondsMin),
      'RateLimit-Policy': `"attempt";q=1;w=${pollSecondsMin}`,
      RateLimit: `"attempt";r=0;t=${pollSecondsMin}`,
    },
  })

/** The attempt as the approval page shows it. Refuses with `not_found`. */
export const findPluginLogin = async ({ sql }: Services, attemptId: string, userId: string): Promise<LoginAttempt> =>
  requireVisible(await findLoginAttempt(sql, attemptId), userId)

/**
 * Until an attempt is decided, every signed-in user with the link can see and decide it; afterwards only who decided
 * it.
 */
function requireVisible(attempt: LoginAttempt | undefined, userId: string): LoginAttempt {
  if (!attempt || (attempt.userId !== null && attempt.userId !== userId)) throw new Refusal('not_found')
  return attempt
}

/** Safe to repeat. Refuses with `not_found`, `attempt_denied`, `attempt_expired` and `unauthorized`. */
export const approvePluginLogin = (services: Services, attemptId: string, user: User, ip: string): Promise<void> =>
  decidePluginLogin(services, { attemptId, user, ip, decision: 'approved' }, ({ status }) => {
    if (status === 'denied') throw new Refusal('attempt_denied')
    return status === 'pending'
  })

/**
 * Denies the attempt, also after an approval whose tokens were not collected. Safe to repeat. Refuses with `not_found`,
 * `attempt_consumed`, `attempt_expired` and `unauthorized`.
 */
export const denyPluginLogin = (services: Services, attemptId: string, user: User, ip: string): Promise<void> =>
  decidePluginLogin(services, { attemptId, user, ip, decision: 'denied' }, ({ status }) => {
    if (status === 'consumed') throw new Refusal('attempt_consumed')
    return status !== 'denied'
  })

interface Decision {
  readonly attemptId: string
  readonly user: User
  readonly ip: string
  readonly decision: 'approved' | 'denied'
}

/** @param hasEffect returns false if the decision changes nothing, and throws if it comes too late. */
async function decidePluginLogin(
  { sql }: Services,
  { attemptId, user, ip, decision }: Decision,
  hasEffect: (attempt: LoginAttempt) => boolean,
): Promise<void> {
  await sql.begin(async (tx) => {
    await lockCredentials(tx, user.userId)
    await requireAliveAuthSession(tx, user)
    const attempt = requireVisible(await lockLoginAttempt(tx, attemptId), user.userId)
    if (attempt.isExpired) throw new Refusal('attempt_expired')
    if (!hasEffect(attempt)) return
    await decideLoginAttempt(tx, attempt.id, { status: decision, userId: user.userId })
    await recordAuditEntry(tx, {
      initiator: 'user',
      action: `plugin_login_${decision}`,
      userId: user.userId,
      ip,
      client: pluginClient(attempt),
      detail: { login_attempt_id: attempt.id, plugin_ip: attempt.ip },
    })
  })
}

/** One character of each look-alike group: 0 O, 1 I L, 2 Z, 5 S, 8 B, U V. */
const codeCharacters = 'ABCDEFGHJKMNPQRTVWXY2345679'

function createUserCode(): string {
  const half = () => Array.from({ length: 4 }, () => codeCharacters[randomInt(codeCharacters.length)]).join('')
  return `${half()}-${half()}`
}
