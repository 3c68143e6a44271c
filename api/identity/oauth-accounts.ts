/**
 * What becomes of somebody who came back from a provider: they sign in, are linked, or are asked for a proof. Identities go
 * by the provider's user id. An address counts only when the provider vouches for it, and even then gives nobody an
 * account that somebody else has proved to be theirs.
 */
import { secureAccount } from '../../db/account-proof.ts'
import { recordAuditEntry } from '../../db/audit.ts'
import { areAuthSessionsAlive } from '../../db/auth-sessions.ts'
import type { Sql } from '../../db/connection.ts'
import { clearMergeProofs } from '../../db/merge-requests.ts'
import {
  connectChat,
  deleteOAuthAccount,
  findIdentityOwner,
  type Identity,
  insertOAuthAccount,
  listSignInMethods,
  lockIdentity,
  type Provider,
  recordVerifiedAddress,
} from '../../db/oauth-accounts.ts'
import { cancelRevocations } from '../../db/provider-token-revocations.ts'
import type { RelaySessionRow } from '../../db/relay-sessions.ts'
import {
  findCredentialsByEmail,
  insertUserFromProvider,
  lockUser,
  lockUserByEmail,
  removePassword,
  verifyOwnEmail,
} from '../../db/users.ts'
import type { OAuthTokens } from '../../providers/oauth/provider.ts'
import { hasChatScopes, tokenPlace } from '../../providers/oauth/tokens.ts'
import { Refusal } from '../http/refusals.ts'
import { type OpenedAuthSession, openAuthSession, siteClient } from '../routes/auth-sessions.ts'
import { type RequestedMerge, requestMerge } from '../routes/merges.ts'
import { newStreamToken } from '../routes/stream-tokens.ts'
import type { Services } from '../services.ts'
import type { User } from './access-tokens.ts'
import { sealTokens } from './provider-tokens.ts'

/** Whoever came back, as the provider tells, and from where. */
export interface Arrival {
  readonly identity: Identity
  /** One that the provider vouches for, or null. */
  readonly verifiedEmail: string | null
  /** Stored for a connected chat only. All others are dropped: who it is has been read, and nothing else needs them. */
  readonly tokens: OAuthTokens
  readonly ip: string
  readonly userAgent: string
}

/** Others can take what was looked up a moment ago; each time somebody got further, so few times are enough. */
const triesMax = 5

class Overtaken extends Error {
  override name = 'Overtaken'
}

interface SignInOutcome {
  readonly answer: OpenedAuthSession | RequestedMerge
  /** Sessions that were ordered off, to be delivered after the commit. */
  readonly disconnected?: readonly RelaySessionRow[]
}

/**
 * Signs in to the identity's account, or to a new one. Answers a merge request instead when the address that the provider
 * vouches for is another account's. Refuses with `account_disabled`.
 */
export async function signIn(services: Services, arrival: Arrival): Promise<OpenedAuthSession | RequestedMerge> {
  for (let tries = 1; ; tries += 1) {
    try {
      const { answer, disconnected = [] } = await services.sql.begin((tx) => trySignIn(tx, services, arrival))
      for (const session of disconnected) services.deliveries.send(session)
      return answer
    } catch (error) {
      if (!(error instanceof Overtaken) || tries === triesMax) throw error
    }
  }
}

async function trySignIn(sql: Sql, services: Services, arrival: Arrival): Promise<SignInOutcome> {
  await lockIdentity(sql, arrival.identity)
  const ownerId = await findIdentityOwner(sql, arrival.identity)
  if (ownerId) return { answer: await signInAsOwner(sql, ownerId, arrival) }
  const { verifiedEmail } = arrival
  // Without one there is nothing to compare, and nothing that could tell of other accounts.
  if (!verifiedEmail) return { answer: await signInAsNew(sql, services, arrival) }
  const holderId = await lockUserByEmail(sql, verifiedEmail)
  if (!holderId) return { answer: await signInAsNew(sql, services, arrival) }
  const holder = await findCredentialsByEmail(sql, verifiedEmail)
  if (holder?.userId !== holderId) throw new Overtaken()
  return holder.isEmailVerified
    ? { answer: await requestMerge(sql, { ...arrival, verifiedEmail, userId: holderId }) }
    : reclaim(sql, services, holderId, arrival, verifiedEmail)
}

async function signInAsOwner(sql: Sql, userId: string, arrival: Arrival) {
  await lockUser(sql, userId)
  // It may have been unlinked while we waited.
  if ((await findIdentityOwner(sql, arrival.identity)) !== userId) throw new Overtaken()
  await recordVouching(sql, userId, arrival)
  return open(sql, userId, arrival)
}

async function signInAsNew(sql: Sql, { sealing }: Services, arrival: Arrival) {
  const userId = await insertUserFromProvider(sql, sealing, {
    email: arrival.verifiedEmail,
    streamToken: newStreamToken(),
  })
  if (!userId) throw new Overtaken()
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'signed_up',
    userId,
    ip: arrival.ip,
    client: siteClient,
    detail: { method: arrival.identity.provider },
  })
  if (!(await insertLink(sql, userId, arrival))) throw new Overtaken()
  return open(sql, userId, arrival)
}

/**
 * The owner of an address has come for an account that someone opened with it and never proved to be theirs: whatever that
 * someone can enter it with is taken away first.
 */
async function reclaim(
  sql: Sql,
  { sealing }: Services,
  userId: string,
  arrival: Arrival,
  email: string,
): Promise<SignInOutcome> {
  const newToken = newStreamToken()
  const { disconnected } = await secureAccount(sql, sealing, userId, {
    email,
    newStreamToken: newToken,
    reason: 'merged',
  })
  await removePassword(sql, userId)
  const { provider } = arrival.identity
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'account_reclaimed',
    userId,
    ip: arrival.ip,
    client: siteClient,
    detail: { provider },
  })
  if (!(await insertLink(sql, userId, arrival))) throw new Overtaken()
  return { answer: await open(sql, userId, arrival), disconnected }
}

const open = (sql: Sql, userId: string, { identity, ip, userAgent }: Arrival) =>
  openAuthSession(sql, { userId, client: siteClient, ip, userAgent, method: identity.provider })

/**
 * Adds the identity to the account of a sign-in. Safe to repeat. Refuses with `unauthorized` when that sign-in is over, and
 * with `provider_already_linked` when the identity is another account's, or the account has another one of that provider.
 * @param wantsChat whether the tokens are meant for the chat too.
 */
export const link = (
  { sql: database, sealing }: Services,
  { userId, authSessionId }: User,
  arrival: Arrival,
  wantsChat: boolean,
): Promise<void> =>
  database.begin(async (sql) => {
    const { identity, tokens, ip } = arrival
    await lockIdentity(sql, identity)
    await lockUser(sql, userId)
    const [alive] = await areAuthSessionsAlive(sql, [{ userId, authSessionId }])
    if (!alive) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })
    const ownerId = await findIdentityOwner(sql, identity)
    if (ownerId === userId) await recordVouching(sql, userId, arrival)
    else if (ownerId || !(await insertLink(sql, userId, arrival))) throw new Refusal('provider_already_linked')
    const { provider } = identity
    if (wantsChat && hasChatScopes(provider, tokens.scopes)) {
      await connectChat(sql, userId, provider, sealedFor(sealing, userId, provider, tokens))
      await cancelRevocations(sql, identity)
    }
    if (!ownerId) await auditLink(sql, userId, identity.provider, 'oauth_linked', ip)
  })

/**
 * Takes an identity off an account; nothing when there is none of that provider. Refuses with `last_sign_in_method` when
 * nobody could sign in to the account any more.
 */
export const unlink = ({ sql: database }: Services, userId: string, provider: Provider, ip: string): Promise<void> =>
  database.begin(async (sql) => {
    // Of two at once the later one sees what the first has left.
    await lockUser(sql, userId)
    const methods = await listSignInMethods(sql, userId)
    if (!methods.includes(provider)) return
    if (methods.length === 1) throw new Refusal('last_sign_in_method')
    await deleteOAuthAccount(sql, userId, provider)
    await clearMergeProofs(sql, userId, provider)
    await auditLink(sql, userId, provider, 'oauth_unlinked', ip)
  })

const auditLink = (
  sql: Sql,
  userId: string,
  provider: Provider,
  action: 'oauth_linked' | 'oauth_unlinked',
  ip: string,
) => recordAuditEntry(sql, { initiator: 'user', action, userId, ip, client: siteClient, detail: { provider } })

/** False when the identity is linked already, or the account has another one of that provider. */
async function insertLink(sql: Sql, userId: string, arrival: Arrival): Promise<boolean> {
  if (!(await insertOAuthAccount(sql, userId, arrival.identity))) return false
  await recordVouching(sql, userId, arrival)
  return true
}

/**
 * At each round trip: a provider may come to vouch for the account's address later than the identity was linked. That verifies
 * the address, so an identity that is vouched for is never on an account that can still be reclaimed.
 */
async function recordVouching(sql: Sql, userId: string, { identity, verifiedEmail }: Arrival): Promise<void> {
  if (!verifiedEmail) return
  await verifyOwnEmail(sql, userId, verifiedEmail)
  await recordVerifiedAddress(sql, userId, identity.provider, verifiedEmail)
}

const sealedFor = (sealing: Services['sealing'], userId: string, provider: Provider, tokens: OAuthTokens) =>
  sealTokens(sealing, tokens, (field) => tokenPlace(userId, provider, field))
