/**
 * Verification of the operator password (HTTP Basic) and the limits on guessing it.
 *
 * Each client network has a budget of wrong passwords per minute. All networks from which no operator has signed in recently
 * share a second budget, so that guessing from many addresses is limited too. Attackers who use that one up lock operators out of
 * new networks only, and only while the attack lasts. {@link RateLimits.countGuess} describes the order of concurrent guesses.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { findOperatorNetwork, touchOperatorNetwork } from '../../db/operator-networks.ts'
import { clientNetwork } from '../http/ip-networks.ts'
import { Refusal } from '../http/refusals.ts'
import type { Credentials } from '../http/route.ts'
import type { Services } from '../services.ts'

type Deps = Pick<Services, 'config' | 'sql' | 'rateLimits' | 'recordAuditAttempt'>

/** Refuses with `invalid_operator`, `rate_limited`, and `not_found` if no operator password is configured. */
export async function verifyOperator(
  { config, sql, rateLimits, recordAuditAttempt }: Deps,
  { ip, header }: Credentials,
): Promise<'operator'> {
  if (config.operatorPassword === undefined) throw new Refusal('not_found')
  const presented = parseBasic(header('authorization'))
  // Not counted as a guess: browsers send a first request without a password, and any page can cause one.
  if (presented === undefined) throw invalidOperator()
  const isRight = isEqual(presented, `operator:${config.operatorPassword}`)
  const network = clientNetwork(ip)
  await rateLimits.countGuess('operator', network, isRight)
  // After the budget of the network: otherwise one network could use up the shared one.
  const knownNetwork = await findOperatorNetwork(sql, network)
  if (!knownNetwork) await rateLimits.countGuess('operator_failures', 'all', isRight)
  if (!isRight) {
    await recordAuditAttempt({ initiator: 'operator', action: 'operator_sign_in_failed', ip })
    throw invalidOperator()
  }
  if (!knownNetwork || knownNetwork.isStale) await touchOperatorNetwork(sql, network)
  return 'operator'
}

function parseBasic(authorization: string | undefined): string | undefined {
  const basic = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? '')?.[1]
  return basic && Buffer.from(basic, 'base64').toString('utf8')
}

const invalidOperator = () =>
  new Refusal('invalid_operator', { headers: { 'WWW-Authenticate': 'Basic realm="operators", charset="UTF-8"' } })

/** In constant time. The digests have equal lengths, whatever the texts have. */
const isEqual = (left: string, right: string): boolean => timingSafeEqual(digest(left), digest(right))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
