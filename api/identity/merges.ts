/**
 * Merges: a provider has verified an address that an existing account has. The identity is linked to that account once
 * its owner has proved to be the same person, with the password or through a linked identity, in the browser in which
 * the merge started.
 */
import { recordAuditEntry } from '../../db/audit.ts'
import type { Sql } from '../../db/connection.ts'
import { recordAuditAttempts } from '../../db/identity/audit-attempts.ts'
import {
  confirmMergeRequest,
  countMergeAttempt,
  findMergeRequest,
  insertMergeRequest,
  lockMergeRequest,
  type MergeRequest,
  mergeRequestSeconds,
  recordMergeProof,
  refundMergeAttempt,
} from '../../db/identity/merge-requests.ts'
import {
  findIdentityOwner,
  type Identity,
  insertOAuthAccount,
  listSignInMethods,
  lockIdentity,
  recordVerifiedAddress,
  type SignInMethod,
} from '../../db/identity/oauth-accounts.ts'
import { findCredentialsByEmail, hasVerifiedEmail, lockUser } from '../../db/identity/users.ts'
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { clientNetwork } from '../http/ip-networks.ts'
import { Refusal } from '../http/refusals.ts'
import { toAuditAttempt } from './audit-attempts.ts'
import { type OpenedAuthSession, openAuthSession, webClient } from './auth-sessions.ts'
import { countPasswordAttempt } from './login-failures.ts'
import type { PasswordClient } from './passwords.ts'
import { createSecretToken, hashSecretToken } from './secret-tokens.ts'
import { sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'

export interface PendingMerge {
  readonly mergeRequestId: string
  /** The ways in which the owner of the account can prove to be it. */
  readonly methods: readonly SignInMethod[]
  readonly secondsLeft: number
}

export interface RequestedMerge extends PendingMerge {
  /** Issued only to the browser in which the merge started. */
  readonly mergeToken: string
}

interface MergeParties {
  /** The account that has the address. */
  readonly userId: string
  readonly verifiedEmail: string
  readonly identity: Identity
  readonly ip: string
}

/** Stores a merge request. The account does not change. */
export async function requestMerge(
  sql: Sql,
  { userId, verifiedEmail, identity, ip }: MergeParties,
): Promise<RequestedMerge> {
  const mergeToken = createSecretToken()
  const mergeRequestId = await insertMergeRequest(sql, {
    ...identity,
    userId,
    email: verifiedEmail,
    mergeTokenHash: hashSecretToken(mergeToken),
  })
  await recordAuditAttempts(sql, [mergeAttempt('merge_requested', { userId, provider: identity.provider }, ip)])
  return { mergeRequestId, mergeToken, methods: await listSignInMethods(sql, userId), secondsLeft: mergeRequestSeconds }
}

/** @returns the merge request if it can still be proved. Refuses with `not_found` and `merge_expired`. */
export function requirePendingMerge(merge: MergeRequest | undefined): MergeRequest {
  if (!merge) throw new Refusal('not_found')
  if (merge.isConfirmed || merge.isExpired || merge.isExhausted) throw new Refusal('merge_expired')
  return merge
}

/**
 * Records the proof of a user who signed in at a provider. Only an identity that is linked to the account proves it;
 * the identity to be linked is not. Any other identity is counted as a failed attempt and refused with
 * `invalid_credentials`.
 */
export async function proveMerge(
  services: Services,
  mergeRequestId: string,
  identity: Identity,
  ip: string,
): Promise<PendingMerge> {
  const pending = await services.sql.begin(async (sql): Promise<PendingMerge | undefined> => {
    const { userId } = requirePendingMerge(await findMergeRequest(sql, mergeRequestId))
    // The account before the merge request: every transaction that locks both does so in this order.
    await lockUser(sql, userId)
    const merge = requirePendingMerge(await lockMergeRequest(sql, mergeRequestId))
    if ((await findIdentityOwner(sql, identity)) !== userId) {
      await countMergeAttempt(sql, mergeRequestId)
      await recordAuditAttempts(sql, [mergeAttempt('merge_refused', merge, ip, identity.provider)])
      return undefined
    }
    await recordMergeProof(sql, mergeRequestId, identity.provider)
    return { mergeRequestId, methods: await listSignInMethods(sql, userId), secondsLeft: merge.secondsLeft }
  })
  // Thrown after the commit, so that the failed attempt stays counted.
  if (!pending)
    throw new Refusal('invalid_credentials', {
      message: 'This sign-in is not linked to the account. Use its password or a sign-in that is linked to it.',
    })
  return pending
}

interface MergeConfirmation extends PasswordClient {
  readonly mergeRequestId: string
  readonly mergeToken: string
  /** Undefined if the owner has proved to be it through a linked identity. */
  readonly password: string | undefined
  readonly userAgent: string
}

/**
 * Links the identity and opens an auth session, once. Refuses with `not_found`, `token_invalid`, `merge_expired`,
 * `invalid_credentials`, `account_disabled`, `provider_already_linked` and `rate_limited`.
 */
export async function confirmMerge(
  services: Services,
  { mergeRequestId, mergeToken, password, ip, userAgent, socket }: MergeConfirmation,
): Promise<OpenedAuthSession> {
  const found = await findMergeRequest(services.sql, mergeRequestId)
  const merge = requireConfirmableMerge(found, hashSecretToken(mergeToken))
  // A password counts as a sign-in attempt. A proof through a provider was counted at its authorization request.
  if (password !== undefined) await services.rateLimits.count('login', clientNetwork(ip))
  const provenPasswordHash =
    password === undefined ? undefined : await checkMergePassword(services, merge, password, { ip, socket })
  return services.sql.begin((tx) => completeMerge(tx, services, merge, { provenPasswordHash, ip, userAgent }))
}

function requireConfirmableMerge(merge: MergeRequest | undefined, mergeTokenHash: Buffer): MergeRequest {
  if (!merge) throw new Refusal('not_found')
  if (!merge.mergeTokenHash.equals(mergeTokenHash) || merge.isConfirmed) throw new Refusal('token_invalid')
  if (merge.isExpired) throw new Refusal('merge_expired')
  return merge
}

/** @returns the hash of the password if it is right. The attempt is counted as failed until then. */
async function checkMergePassword(
  services: Services,
  merge: MergeRequest,
  password: string,
  client: PasswordClient,
): Promise<string> {
  const { sql, passwords } = services
  const { ip } = client
  const attempt = await countPasswordAttempt(services, merge.email, ip)
  if (!(await countMergeAttempt(sql, merge.id))) {
    await attempt.refund()
    throw new Refusal('merge_expired')
  }
  const refund = async () => {
    await attempt.refund()
    await refundMergeAttempt(sql, merge.id)
  }
  const credentials = await findCredentialsByEmail(sql, merge.email)
  const isRight = await passwords.matches(password, credentials?.passwordHash, client).catch(async (error: unknown) => {
    await refund()
    throw error
  })
  if (!credentials?.passwordHash || credentials.userId !== merge.userId || !isRight) {
    await recordAuditAttempts(sql, [mergeAttempt('merge_refused', merge, ip, 'password')])
    throw new Refusal('invalid_credentials', { message: 'The password is incorrect.' })
  }
  await refund()
  return credentials.passwordHash
}

interface MergeProof {
  readonly provenPasswordHash: string | undefined
  readonly ip: string
  readonly userAgent: string
}

/** Repeats every check with the locks held, since the merge or the account may have changed in the meantime. */
async function completeMerge(
  sql: Sql,
  services: Services,
  checked: MergeRequest,
  proof: MergeProof,
): Promise<OpenedAuthSession> {
  const { userId, provider } = checked
  const { provenPasswordHash, ip, userAgent } = proof
  await lockIdentity(sql, checked)
  await lockUser(sql, userId)
  const merge = requireConfirmableMerge(await lockMergeRequest(sql, checked.id), checked.mergeTokenHash)
  if (!(await hasVerifiedEmail(sql, userId, merge.email))) throw new Refusal('token_invalid')
  const method = provenPasswordHash === undefined ? requireProvider(merge) : 'password'
  const opened = await openAuthSession(sql, { userId, client: webClient, ip, userAgent, provenPasswordHash, method })
  if (!(await insertOAuthAccount(sql, userId, merge))) throw new Refusal('provider_already_linked')
  // The provider verified this address when the merge was requested.
  await recordVerifiedAddress(sql, userId, provider, merge.email)
  await confirmMergeRequest(sql, merge.id)
  await recordAuditEntry(sql, mergeEntry('merge_confirmed', merge, ip, method))
  await sendSecurityMail(sql, services, userId, { subject: 'sign_in_method_added', methods: [provider] })
  return opened
}

/** @returns the provider through which the owner has proved to be it. */
function requireProvider({ provedBy, isExhausted }: MergeRequest): OAuthProviderName {
  if (isExhausted) throw new Refusal('merge_expired')
  if (!provedBy)
    throw new Refusal('invalid_credentials', {
      message: 'Prove first that the account is yours, with its password or with a sign-in that is linked to it.',
    })
  return provedBy
}

type MergeAction = 'merge_requested' | 'merge_refused' | 'merge_confirmed'

/** @param method of the proof. */
const mergeEntry = (
  action: MergeAction,
  { userId, provider }: { userId: string; provider: OAuthProviderName },
  ip: string,
  method?: SignInMethod,
) => ({
  initiator: 'user' as const,
  action,
  userId,
  ip,
  client: webClient,
  detail: { provider, ...(method ? { method } : {}) },
})

/** Counted as an attempt: the owner of an identity, who may not own the account, can request merges without limit. */
const mergeAttempt = (...entry: Parameters<typeof mergeEntry>) => toAuditAttempt(mergeEntry(...entry))
