/**
 * Verification of operators: by the operator password (HTTP Basic), with limits on guessing it, or by the token of an
 * operator session (Bearer), which `POST /admin/sign-in` returns in exchange for the password.
 *
 * Each client network has a budget of wrong passwords per minute. All networks from which no operator has signed in
 * recently share a second budget, so that guessing from many addresses is limited too. Attackers who use that one up
 * lock operators out of new networks only, and only while the attack lasts. {@link RateLimits.countGuess} describes the
 * order of concurrent guesses.
 */

import { findOperatorNetwork, touchOperatorNetwork } from '../../db/identity/operator-networks.ts'
import { findOperatorSession, touchOperatorSession } from '../../db/identity/operator-sessions.ts'
import { areEqualSecrets } from '../../platform/equal-secrets.ts'
import { clientNetwork } from '../http/ip-networks.ts'
import { Refusal } from '../http/refusals.ts'
import type { Credentials } from '../http/requests.ts'
import { hashSecretToken } from './secret-tokens.ts'
import type { Services } from './services.ts'

type Deps = Pick<Services, 'config' | 'sql' | 'sealing' | 'rateLimits' | 'recordAuditAttempt'>

/** Whoever has the operator password, or the token of a session that was opened with it. */
export interface OperatorCaller {
  /** Undefined with the password. */
  readonly sessionId: string | undefined
}

/** The field of the keyed hash with which a session refers to the password that opened it. */
export const passwordHashField = 'operator_password'

/**
 * Sent with a request that no person caused, such as the refresh of a page: it does not prolong the operator session.
 */
export const unattendedHeader = 'x-unattended'

/** Refuses with `invalid_operator`, `rate_limited`, and `not_found` if no operator password is configured. */
export async function verifyOperator(deps: Deps, credentials: Credentials): Promise<OperatorCaller> {
  const { operatorPassword } = deps.config
  if (operatorPassword === undefined) throw new Refusal('not_found')
  const token = parseToken(credentials.header('authorization'))
  if (token !== undefined) return verifyToken(deps, credentials, token, operatorPassword)
  await verifyPassword(deps, credentials, operatorPassword)
  return { sessionId: undefined }
}

/** A wrong token counts as a wrong password of its network. A right one is not limited, since it cannot be guessed. */
async function verifyToken(
  { sql, sealing, rateLimits, recordAuditAttempt }: Deps,
  { ip, header }: Credentials,
  token: string,
  operatorPassword: string,
): Promise<OperatorCaller> {
  const passwordHashes = sealing.hashes(operatorPassword, passwordHashField)
  const session = await findOperatorSession(sql, hashSecretToken(token), passwordHashes)
  if (!session) {
    await rateLimits.countGuess('operator', clientNetwork(ip), false)
    await recordAuditAttempt({ ...failedSignIn, ip, detail: { credential: 'token' } })
    throw invalidOperator('The operator session has ended. Sign in again.')
  }
  if (session.isStale && header(unattendedHeader) === undefined) await touchOperatorSession(sql, session.id)
  return { sessionId: session.id }
}

async function verifyPassword(
  { sql, rateLimits, recordAuditAttempt }: Deps,
  { ip, header }: Credentials,
  operatorPassword: string,
): Promise<void> {
  const presented = parseBasic(header('authorization'))
  // Not counted as a guess: browsers send a first request without a password, and any page can cause one.
  if (presented === undefined) throw invalidOperator()
  const isRight = areEqualSecrets(presented, `operator:${operatorPassword}`)
  const network = clientNetwork(ip)
  await rateLimits.countGuess('operator', network, isRight)
  // After the budget of the network: otherwise one network could use up the shared one.
  const knownNetwork = await findOperatorNetwork(sql, network)
  if (!knownNetwork) await rateLimits.countGuess('operator_failures', 'all', isRight)
  if (!isRight) {
    await recordAuditAttempt({ ...failedSignIn, ip })
    throw invalidOperator()
  }
  if (!knownNetwork || knownNetwork.isStale) await touchOperatorNetwork(sql, network)
}

/** Guesses beyond the limits are refused unread, and have no entry. */
const failedSignIn = { initiator: 'operator', action: 'operator_sign_in_failed' } as const

/** The token of an operator session has no dots, unlike an access token. */
const parseToken = (authorization: string | undefined): string | undefined =>
  /^Bearer ([\w-]{43})$/i.exec(authorization ?? '')?.[1]

function parseBasic(authorization: string | undefined): string | undefined {
  const basic = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? '')?.[1]
  return basic && Buffer.from(basic, 'base64').toString('utf8')
}

const invalidOperator = (message?: string) =>
  new Refusal('invalid_operator', {
    message,
    headers: { 'WWW-Authenticate': 'Basic realm="operators", charset="UTF-8"' },
  })
