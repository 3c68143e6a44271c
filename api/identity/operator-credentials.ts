/**
 * The operator password, by HTTP Basic, and the limits on guessing it.
 *
 * One address has a budget of wrong passwords a minute. All networks from which the password was not right lately share
 * another one, so that guessing from many addresses is bounded too; strangers who use that one up keep operators out of new
 * networks only, and as long as they go on. See {@link RateLimits.countGuess} for what holds in a burst.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { findOperatorNetwork, touchOperatorNetwork } from '../../db/operator-networks.ts'
import { addressSubject } from '../http/networks.ts'
import { Refusal } from '../http/refusals.ts'
import type { Credentials } from '../http/route.ts'
import type { Services } from '../services.ts'

type Needs = Pick<Services, 'config' | 'sql' | 'rateLimits' | 'auditAttempt'>

/** Refuses with `not_found` where no operator password is set, `invalid_operator` and `rate_limited`. */
export async function verifyOperator(
  { config, sql, rateLimits, auditAttempt }: Needs,
  { ip, header }: Credentials,
): Promise<'operator'> {
  if (config.operatorPassword === undefined) throw new Refusal('not_found')
  const given = readBasic(header('authorization'))
  // Nothing was guessed: a browser asks without a password first, and any page can make it ask.
  if (given === undefined) throw invalidOperator()
  const isRight = isSameText(given, `operator:${config.operatorPassword}`)
  const network = addressSubject(ip)
  await rateLimits.countGuess('operator', network, isRight)
  // Only what the address's own budget lets through is counted here, or one address could use up the shared one.
  const known = await findOperatorNetwork(sql, network)
  if (!known) await rateLimits.countGuess('operator_failures', 'all', isRight)
  if (!isRight) {
    await auditAttempt({ initiator: 'operator', action: 'operator_sign_in_failed', ip })
    throw invalidOperator()
  }
  if (!known || known.isStale) await touchOperatorNetwork(sql, network)
  return 'operator'
}

function readBasic(authorization: string | undefined): string | undefined {
  const basic = /^Basic ([A-Za-z0-9+/]+=*)$/i.exec(authorization ?? '')?.[1]
  return basic && Buffer.from(basic, 'base64').toString('utf8')
}

const invalidOperator = () =>
  new Refusal('invalid_operator', { headers: { 'WWW-Authenticate': 'Basic realm="operators", charset="UTF-8"' } })

/** Takes as long whatever is right of it, and however long each is. */
const isSameText = (left: string, right: string): boolean => timingSafeEqual(digestOf(left), digestOf(right))

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest()
