/**
 * Proof that a signed-in person is the account's owner, and not someone with a stolen sign-in: the password, or for an
 * account without one a recent sign-in.
 */

import type { Sql } from '../../db/connection.ts'
import { findSignInAge } from '../../db/identity/auth-sessions.ts'
import { findCredentials, lockUser, type OwnCredentials } from '../../db/identity/users.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { requireAliveAuthSession, webClient } from './auth-sessions.ts'
import { countPasswordAttempt } from './login-failures.ts'
import type { PasswordClient } from './passwords.ts'
import type { Services } from './services.ts'

/** Accounts without a password prove their owner with a sign-in that is not older. */
const recentSignInSeconds = 600

/** What the proof was based on: see {@link lockProvenAccount}. */
export interface OwnerProof {
  readonly email: string | null
  readonly passwordHash: string | null
}

interface PresentedProof extends PasswordClient {
  readonly user: User
  /** Undefined for an account without a password. */
  readonly password: string | undefined
}

/**
 * Refuses with `invalid_request` without a password, `invalid_credentials`, `rate_limited` and
 * `recent_sign_in_required`.
 */
export async function proveOwner(services: Services, proof: PresentedProof): Promise<OwnerProof> {
  const credentials = await findCredentials(services.sql, proof.user.userId)
  if (!credentials) throw new Refusal('unauthorized')
  if (hasUsablePassword(credentials)) {
    if (proof.password === undefined)
      throw new Refusal('invalid_request', { message: 'body field password: is required for this account' })
    return checkOwnPassword(services, credentials, { ...proof, password: proof.password })
  }
  if (!isRecent(await findSignInAge(services.sql, proof.user))) throw new Refusal('recent_sign_in_required')
  return credentials
}

/** What {@link proveOwner} requires for this account and sign-in. */
export async function describeOwnerProof(
  { sql }: Pick<Services, 'sql'>,
  user: User,
): Promise<{ hasPassword: boolean; isSignInRecent: boolean }> {
  const [credentials, age] = await Promise.all([findCredentials(sql, user.userId), findSignInAge(sql, user)])
  if (!credentials) throw new Refusal('unauthorized')
  return { hasPassword: hasUsablePassword(credentials), isSignInRecent: isRecent(age) }
}

/** A password counts only if the account has an address to sign in with. */
const hasUsablePassword = ({ email, passwordHash }: OwnCredentials): boolean => passwordHash !== null && email !== null

const isRecent = (seconds: number | undefined): boolean => seconds !== undefined && seconds <= recentSignInSeconds

/**
 * Wrong passwords are limited like those at sign-in, by the same counters. Refuses with `invalid_credentials` and
 * `rate_limited`.
 */
export async function checkOwnPassword(
  services: Services,
  credentials: OwnCredentials,
  { user, password, ip, socket }: PresentedProof & { readonly password: string },
): Promise<OwnerProof> {
  const { passwords, recordAuditAttempt } = services
  const attempt = await countPasswordAttempt(services, credentials.email ?? user.userId, ip)
  const client = { ip, socket }
  const isRight = await passwords.matches(password, credentials.passwordHash, client).catch(async (error: unknown) => {
    await attempt.refund()
    throw error
  })
  if (!isRight) {
    const action = 'password_check_failed'
    await recordAuditAttempt({ initiator: 'user', action, userId: user.userId, ip, client: webClient })
    throw new Refusal('invalid_credentials', { message: 'The current password is incorrect.' })
  }
  await attempt.refund()
  return credentials
}

/**
 * Locks the account's row. Refuses with `unauthorized` if the auth session was revoked meanwhile, and with
 * `invalid_credentials` if the password was changed after it was compared.
 */
export async function lockProvenAccount(tx: Sql, user: User, proof: OwnerProof): Promise<OwnCredentials> {
  await lockUser(tx, user.userId)
  await requireAliveAuthSession(tx, user)
  const credentials = await findCredentials(tx, user.userId)
  if (!credentials || credentials.passwordHash !== proof.passwordHash)
    throw new Refusal('invalid_credentials', { message: 'The password was changed meanwhile.' })
  return credentials
}
