/**
 * What a completed OAuth callback leads to: a sign-in, a linked identity, or a merge request. Identities are keyed by
 * the provider's user id. An email address is used only if the provider has verified it, and it never gives access to
 * an account whose address someone else has proved to own.
 */

import { recordAuditEntry } from '../../db/audit.ts'
import type { Sql } from '../../db/connection.ts'
import { clearMergeProofs } from '../../db/identity/merge-requests.ts'
import {
  connectChat,
  deleteOAuthAccount,
  findIdentityOwner,
  type Identity,
  insertOAuthAccount,
  listSignInMethods,
  lockIdentity,
  recordVerifiedAddress,
} from '../../db/identity/oauth-accounts.ts'
import { cancelRevocations } from '../../db/identity/provider-token-revocations.ts'
import { recordTermsAcceptance } from '../../db/identity/terms-acceptances.ts'
import {
  findCredentialsByEmail,
  insertUserFromProvider,
  lockUser,
  lockUserByEmail,
  removePassword,
  verifyOwnEmail,
} from '../../db/identity/users.ts'
import type { RelaySessionRow } from '../../db/relay/sessions.ts'
import { secureAccount } from '../../db/transactions/secure-account.ts'
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import type { OAuthTokens } from '../../providers/oauth/provider.ts'
import { hasChatScopes, tokenPlace } from '../../providers/oauth/tokens.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from './access-tokens.ts'
import { type OpenedAuthSession, openAuthSession, requireAliveAuthSession, webClient } from './auth-sessions.ts'
import { type RequestedMerge, requestMerge } from './merges.ts'
import { sealTokens } from './provider-tokens.ts'
import { mailMethodChanges, sendSecurityMail } from './security-mails.ts'
import type { Services } from './services.ts'
import { createStreamToken } from './stream-tokens.ts'

/** The identity and tokens that the provider returned for a callback, and the client that sent it. */
export interface VerifiedOAuthCallback {
  readonly identity: Identity
  /** Null unless the provider has verified the address. */
  readonly verifiedEmail: string | null
  /** Stored only when the user connects chat; otherwise they are not needed after the identity was read. */
  readonly tokens: OAuthTokens
  readonly ip: string
  readonly userAgent: string
  /** The version of the terms that a new account accepts, if the page stated it. */
  readonly termsVersion: string | undefined
}

/** Each conflict means that another transaction has committed, so few attempts are enough. */
const attemptsMax = 5

/** Another transaction has changed what this one has read. */
class ConcurrentUpdateError extends Error {
  override name = 'ConcurrentUpdateError'
}

interface SignInOutcome {
  readonly result: OpenedAuthSession | RequestedMerge
  /** Sessions with a new `disconnect` command, to be delivered after the commit. */
  readonly disconnected?: readonly RelaySessionRow[]
}

/**
 * Signs in to the account of the identity, or to a new account. Returns a merge request instead if another account has
 * the address that the provider has verified. Refuses with `account_disabled`.
 */
export async function signInWithIdentity(
  services: Services,
  callback: VerifiedOAuthCallback,
): Promise<OpenedAuthSession | RequestedMerge> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const { result, disconnected = [] } = await services.sql.begin((tx) => trySignIn(tx, services, callback))
      for (const session of disconnected) services.deliveries.send(session)
      return result
    } catch (error) {
      if (!(error instanceof ConcurrentUpdateError) || attempt === attemptsMax) throw error
    }
  }
}

async function trySignIn(sql: Sql, services: Services, callback: VerifiedOAuthCallback): Promise<SignInOutcome> {
  await lockIdentity(sql, callback.identity)
  const ownerId = await findIdentityOwner(sql, callback.identity)
  if (ownerId) return { result: await signInToOwner(sql, ownerId, callback) }
  const { verifiedEmail } = callback
  // Without a verified address no account is looked up, so the response cannot reveal one.
  if (!verifiedEmail) return { result: await signInToNewAccount(sql, services, callback) }
  const holderId = await lockUserByEmail(sql, verifiedEmail)
  if (!holderId) return { result: await signInToNewAccount(sql, services, callback) }
  const holder = await findCredentialsByEmail(sql, verifiedEmail)
  if (holder?.userId !== holderId) throw new ConcurrentUpdateError()
  return holder.isEmailVerified
    ? { result: await requestMerge(sql, { ...callback, verifiedEmail, userId: holderId }) }
    : reclaimAccount(sql, services, holderId, callback, verifiedEmail)
}

async function signInToOwner(sql: Sql, userId: string, callback: VerifiedOAuthCallback) {
  await lockUser(sql, userId)
  // The identity may have been unlinked before the lock was acquired.
  if ((await findIdentityOwner(sql, callback.identity)) !== userId) throw new ConcurrentUpdateError()
  await recordVerifiedEmail(sql, userId, callback)
  return openSession(sql, userId, callback)
}

async function signInToNewAccount(sql: Sql, { sealing }: Services, callback: VerifiedOAuthCallback) {
  const userId = await insertUserFromProvider(sql, sealing, {
    email: callback.verifiedEmail,
    streamToken: createStreamToken(),
  })
  if (!userId) throw new ConcurrentUpdateError()
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'signed_up',
    userId,
    ip: callback.ip,
    client: webClient,
    detail: { method: callback.identity.provider },
  })
  await recordTermsAcceptance(sql, userId, callback.termsVersion)
  if (!(await insertLink(sql, userId, callback))) throw new ConcurrentUpdateError()
  return openSession(sql, userId, callback)
}

/**
 * The owner of an address signs in to an account that someone else created with it and never verified. All access of
 * that other person is removed first, including the password.
 */
async function reclaimAccount(
  sql: Sql,
  services: Services,
  userId: string,
  callback: VerifiedOAuthCallback,
  email: string,
): Promise<SignInOutcome> {
  const methods = await listSignInMethods(sql, userId)
  const { disconnected } = await secureAccount(sql, services.sealing, userId, {
    email,
    newStreamToken: createStreamToken(),
    reason: 'merged',
  })
  await removePassword(sql, userId)
  const { provider } = callback.identity
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'account_reclaimed',
    userId,
    ip: callback.ip,
    client: webClient,
    detail: { provider },
  })
  // What the person accepted who created the account does not bind its owner.
  await recordTermsAcceptance(sql, userId, callback.termsVersion)
  if (!(await insertLink(sql, userId, callback))) throw new ConcurrentUpdateError()
  await mailMethodChanges(sql, services, userId, methods)
  return { result: await openSession(sql, userId, callback), disconnected }
}

const openSession = (sql: Sql, userId: string, { identity, ip, userAgent }: VerifiedOAuthCallback) =>
  openAuthSession(sql, { userId, client: webClient, ip, userAgent, method: identity.provider })

/**
 * Links the identity to the account of an auth session. Safe to repeat. Refuses with `unauthorized` if the auth session
 * was revoked, and with `provider_already_linked` if the identity is linked to another account or the account has
 * another identity of that provider.
 * @param connectsChat whether to store the tokens for chat.
 */
export const linkIdentity = (
  services: Services,
  user: User,
  callback: VerifiedOAuthCallback,
  connectsChat: boolean,
): Promise<void> =>
  services.sql.begin(async (sql) => {
    const { userId } = user
    const { identity, tokens, ip } = callback
    await lockIdentity(sql, identity)
    await lockUser(sql, userId)
    await requireAliveAuthSession(sql, user)
    const ownerId = await findIdentityOwner(sql, identity)
    if (ownerId === userId) await recordVerifiedEmail(sql, userId, callback)
    else if (ownerId || !(await insertLink(sql, userId, callback))) throw new Refusal('provider_already_linked')
    const { provider } = identity
    if (connectsChat && hasChatScopes(provider, tokens.scopes)) {
      const sealed = sealTokens(services.sealing, tokens, (field) => tokenPlace(userId, provider, field))
      await connectChat(sql, userId, provider, sealed)
      await cancelRevocations(sql, identity)
    }
    if (ownerId) return
    await recordLinkChange(sql, userId, provider, 'oauth_linked', ip)
    await sendSecurityMail(sql, services, userId, { subject: 'sign_in_method_added', methods: [provider] })
  })

/**
 * Does nothing if no identity of the provider is linked. Refuses with `last_sign_in_method` if the account has no
 * other.
 */
export const unlinkIdentity = (
  services: Services,
  userId: string,
  provider: OAuthProviderName,
  ip: string,
): Promise<void> =>
  services.sql.begin(async (sql) => {
    // Serialises concurrent requests: together they must not remove the last sign-in method.
    await lockUser(sql, userId)
    const methods = await listSignInMethods(sql, userId)
    if (!methods.includes(provider)) return
    if (methods.length === 1) throw new Refusal('last_sign_in_method')
    await deleteOAuthAccount(sql, userId, provider)
    await clearMergeProofs(sql, userId, provider)
    await recordLinkChange(sql, userId, provider, 'oauth_unlinked', ip)
    await sendSecurityMail(sql, services, userId, { subject: 'sign_in_method_removed', methods: [provider] })
  })

const recordLinkChange = (
  sql: Sql,
  userId: string,
  provider: OAuthProviderName,
  action: 'oauth_linked' | 'oauth_unlinked',
  ip: string,
) => recordAuditEntry(sql, { initiator: 'user', action, userId, ip, client: webClient, detail: { provider } })

/** @returns false if the identity is linked already or the account has another identity of that provider. */
async function insertLink(sql: Sql, userId: string, callback: VerifiedOAuthCallback): Promise<boolean> {
  if (!(await insertOAuthAccount(sql, userId, callback.identity))) return false
  await recordVerifiedEmail(sql, userId, callback)
  return true
}

/**
 * Runs at every sign-in, since a provider may verify the account's address after the identity was linked. This also
 * marks the account's address as verified: an account that can still be reclaimed never has an identity with a verified
 * address.
 */
async function recordVerifiedEmail(
  sql: Sql,
  userId: string,
  { identity, verifiedEmail }: VerifiedOAuthCallback,
): Promise<void> {
  if (!verifiedEmail) return
  await verifyOwnEmail(sql, userId, verifiedEmail)
  await recordVerifiedAddress(sql, userId, identity.provider, verifiedEmail)
}
