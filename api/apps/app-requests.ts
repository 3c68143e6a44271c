/**
 * Requests of apps for access to an account, which a signed-in user approves or denies. Opening the page and signing in
 * decide nothing. A decision counts only in the browser that started the request: see `request-tickets.ts`.
 */
import type { Sql } from '../../db/connection.ts'
import { insertGrant } from '../../db/identity/app-grants.ts'
import {
  type AppDecision,
  type AppRequest,
  decideAppRequest,
  findAppRequest,
  lockAppRequest,
} from '../../db/identity/app-requests.ts'
import { lockCredentials } from '../../db/identity/users.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from '../identity/access-tokens.ts'
import { requireAliveAuthSession } from '../identity/auth-sessions.ts'
import type { Services } from '../identity/services.ts'
import { continueUrlOf } from './app-addresses.ts'
import { createTicket, isTicketOf } from './request-tickets.ts'

/** The request as its page shows it. Refuses with `not_found`. */
export const showAppRequest = async (sql: Sql, id: string, userId: string): Promise<AppRequest> =>
  requireVisible(await findAppRequest(sql, id), userId)

/** Until it is decided, every signed-in user with the link can see and decide it; afterwards only who decided it. */
function requireVisible(request: AppRequest | undefined, userId: string): AppRequest {
  if (!request || (request.userId !== null && request.userId !== userId)) throw new Refusal('not_found')
  return request
}

/**
 * Decides a request. Safe to repeat. Refuses with `not_found` and `unauthorized`.
 * @returns where the browser continues to the app.
 */
export async function decideOnAppRequest(
  { sql, sealing, config }: Pick<Services, 'sql' | 'sealing'> & { readonly config: Pick<Config, 'apiUrl'> },
  id: string,
  user: User,
  decision: AppDecision,
): Promise<string> {
  await sql.begin(async (tx) => {
    await lockCredentials(tx, user.userId)
    await requireAliveAuthSession(tx, user)
    requireVisible(await lockAppRequest(tx, id), user.userId)
    await decideAppRequest(tx, id, user.userId, decision)
  })
  return continueUrlOf(config, id, createTicket(sealing, id, user.userId))
}

interface Return {
  readonly requestId: string
  readonly ticket: string
  readonly ip: string
  readonly userAgent: string
}

/**
 * The result of a decided request for the library, with a new grant if it was approved. In the transaction that issues
 * the authorization code.
 * @returns undefined if the request is not decided, or was decided in another browser.
 */
export async function takeDecision(
  tx: Sql,
  sealing: Sealing,
  { requestId, ticket, ip, userAgent }: Return,
): Promise<object | undefined> {
  const found = await findAppRequest(tx, requestId)
  if (!found || found.userId === null || !isTicketOf(sealing, ticket, requestId, found.userId)) return undefined
  const credentials = await lockCredentials(tx, found.userId)
  const request = await lockAppRequest(tx, requestId)
  if (request?.userId !== found.userId || !credentials || credentials.isDisabled) return undefined
  const { userId, clientId, scopes, decision } = request
  if (decision !== 'approved') return { error: 'access_denied', error_description: 'The user denied the request.' }
  const grantId = await insertGrant(tx, { userId, clientId, scopes, ip, userAgent })
  return { login: { accountId: userId, remember: false }, consent: { grantId } }
}
