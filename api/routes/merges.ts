/**
 * Merges: an address that a provider vouches for is an account's already. The identity is linked to that account only once
 * its owner has proved to be it, with the password or through a provider that was linked before, in the very browser that
 * the merge began in.
 */
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import { recordAuditAttempts } from '../../db/audit-attempts.ts'
import type { Sql } from '../../db/connection.ts'
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
} from '../../db/merge-requests.ts'
import {
  findIdentityOwner,
  type Identity,
  insertOAuthAccount,
  listSignInMethods,
  lockIdentity,
  type Provider,
  recordVerifiedAddress,
  type SignInMethod,
} from '../../db/oauth-accounts.ts'
import { findCredentialsByEmail, hasVerifiedEmail, lockUser } from '../../db/users.ts'
import { addressSubject } from '../http/networks.ts'
import { Refusal } from '../http/refusals.ts'
import { ok, route } from '../http/route.ts'
import { id } from '../http/schemas.ts'
import { attemptOf } from '../identity/audit-attempts.ts'
import { countTry } from '../identity/login-failures.ts'
import type { Services } from '../services.ts'
import { hashOfToken, newSecretToken, openAuthSession, siteClient, TokenSet, tokenSet } from './auth-sessions.ts'

export interface PendingMerge {
  readonly mergeRequestId: string
  /** How the account's owner can prove to be it. */
  readonly methods: readonly SignInMethod[]
  readonly secondsLeft: number
}

export interface RequestedMerge extends PendingMerge {
  /** Only the browser that the merge began in has it. */
  readonly mergeToken: string
}

interface MergeParties {
  /** The account that has the address. */
  readonly userId: string
  readonly verifiedEmail: string
  readonly identity: Identity
  readonly ip: string
}

/** Asks for a proof, and changes nothing else. */
export async function requestMerge(
  sql: Sql,
  { userId, verifiedEmail, identity, ip }: MergeParties,
): Promise<RequestedMerge> {
  const mergeToken = newSecretToken()
  const mergeRequestId = await insertMergeRequest(sql, {
    ...identity,
    userId,
    email: verifiedEmail,
    mergeTokenHash: hashOfToken(mergeToken),
  })
  await recordAuditAttempts(sql, [mergeAttempt('merge_requested', { userId, provider: identity.provider }, ip)])
  return { mergeRequestId, mergeToken, methods: await listSignInMethods(sql, userId), secondsLeft: mergeRequestSeconds }
}

/** The merge request as long as it waits for a proof. Refuses with `not_found` and `merge_expired`. */
export function provable(merge: MergeRequest | undefined): MergeRequest {
  if (!merge) throw new Refusal('not_found')
  if (merge.isConfirmed || merge.isExpired || merge.isExhausted) throw new Refusal('merge_expired')
  return merge
}

/**
 * Somebody came back from a provider to prove whose account a merge is about: only an identity that is linked to it does.
 * The one that is to be linked is not, so it never proves itself. Refuses with `invalid_credentials`, and that is counted.
 */
export async function prove(services: Services, mergeRequestId: string, identity: Identity, ip: string) {
  const proved = await services.sql.begin(async (sql): Promise<PendingMerge | undefined> => {
    const { userId } = provable(await findMergeRequest(sql, mergeRequestId))
    // The account before the request, as all do who hold both.
    await lockUser(sql, userId)
    const merge = provable(await lockMergeRequest(sql, mergeRequestId))
    if ((await findIdentityOwner(sql, identity)) !== userId) {
      await countMergeAttempt(sql, mergeRequestId)
      await recordAuditAttempts(sql, [mergeAttempt('merge_refused', merge, ip, identity.provider)])
      return undefined
    }
    await recordMergeProof(sql, mergeRequestId, identity.provider)
    return { mergeRequestId, methods: await listSignInMethods(sql, userId), secondsLeft: merge.secondsLeft }
  })
  // Refused only after the commit: the try has to count.
  if (!proved)
    throw new Refusal('invalid_credentials', { message: 'This is not a sign-in that the account had before.' })
  return proved
}

export const confirm = route({
  method: 'POST',
  path: '/auth/merge/{merge_request_id}/confirm',
  summary: 'Link a new sign-in to the account that has its address, once the owner has proved to be it',
  caller: 'none',
  limit: 'login',
  countsItself: true,
  secret: true,
  params: z.object({ merge_request_id: id }),
  body: z.object({
    merge_token: z.string(),
    password: z.string().optional().describe('Left out after a round trip with intent `merge`.'),
  }),
  answers: { 200: TokenSet.extend({ status: z.literal('signed_in') }) },
  refuses: [
    'not_found',
    'token_invalid',
    'merge_expired',
    'invalid_credentials',
    'account_disabled',
    'provider_already_linked',
  ],
  handle: async ({ params, body, ip, userAgent }, services) => {
    const merge = await findMergeRequest(services.sql, params.merge_request_id)
    const open = confirmable(merge, hashOfToken(body.merge_token))
    // A password typed here is one tried at the login. A round trip that proved the owner was counted where it began.
    if (body.password !== undefined) await services.rateLimits.count('login', addressSubject(ip))
    const provenPasswordHash =
      body.password === undefined ? undefined : await provePassword(services, open, body.password, ip)
    const opened = await services.sql.begin((tx) => complete(tx, open, { provenPasswordHash, ip, userAgent }))
    return ok({ status: 'signed_in', ...(await tokenSet(services, opened)) })
  },
})

function confirmable(merge: MergeRequest | undefined, mergeTokenHash: Buffer): MergeRequest {
  if (!merge) throw new Refusal('not_found')
  if (!merge.mergeTokenHash.equals(mergeTokenHash) || merge.isConfirmed) throw new Refusal('token_invalid')
  if (merge.isExpired) throw new Refusal('merge_expired')
  return merge
}

/** The password's hash, if the password is right. Counted as a wrong one until it is known. */
async function provePassword(services: Services, merge: MergeRequest, password: string, ip: string): Promise<string> {
  const { sql, passwords } = services
  const counted = await countTry(services, merge.email, ip)
  if (!(await countMergeAttempt(sql, merge.id))) {
    await counted.forgive()
    throw new Refusal('merge_expired')
  }
  const forgive = async () => {
    await counted.forgive()
    await refundMergeAttempt(sql, merge.id)
  }
  const credentials = await findCredentialsByEmail(sql, merge.email)
  const right = await passwords.matches(password, credentials?.passwordHash, ip).catch(async (error: unknown) => {
    await forgive()
    throw error
  })
  if (!credentials?.passwordHash || credentials.userId !== merge.userId || !right) {
    await recordAuditAttempts(sql, [mergeAttempt('merge_refused', merge, ip, 'password')])
    throw new Refusal('invalid_credentials', { message: 'The password is not right.' })
  }
  await forgive()
  return credentials.passwordHash
}

interface Proof {
  readonly provenPasswordHash: string | undefined
  readonly ip: string
  readonly userAgent: string
}

/** Links and signs in, once: whatever was true before is looked at again with the locks held. */
async function complete(sql: Sql, seen: MergeRequest, proof: Proof) {
  const { userId, provider } = seen
  const { provenPasswordHash, ip, userAgent } = proof
  await lockIdentity(sql, seen)
  await lockUser(sql, userId)
  const merge = confirmable(await lockMergeRequest(sql, seen.id), seen.mergeTokenHash)
  if (!(await hasVerifiedEmail(sql, userId, merge.email))) throw new Refusal('token_invalid')
  const method = provenPasswordHash === undefined ? provenMethod(merge) : 'password'
  const opened = await openAuthSession(sql, { userId, client: siteClient, ip, userAgent, provenPasswordHash, method })
  if (!(await insertOAuthAccount(sql, userId, merge))) throw new Refusal('provider_already_linked')
  // The merge began with the provider vouching for this address.
  await recordVerifiedAddress(sql, userId, provider, merge.email)
  await confirmMergeRequest(sql, merge.id)
  await recordAuditEntry(sql, mergeEntry('merge_confirmed', merge, ip, method))
  return opened
}

function provenMethod({ provedBy, isExhausted }: MergeRequest): Provider {
  if (isExhausted) throw new Refusal('merge_expired')
  if (!provedBy)
    throw new Refusal('invalid_credentials', {
      message: 'Prove first that the account is yours: with its password, or with a sign-in that it had before.',
    })
  return provedBy
}

type MergeAct = 'merge_requested' | 'merge_refused' | 'merge_confirmed'

/** @param method what the owner was to be proved by. */
const mergeEntry = (
  action: MergeAct,
  { userId, provider }: { userId: string; provider: Provider },
  ip: string,
  method?: SignInMethod,
) => ({
  initiator: 'user' as const,
  action,
  userId,
  ip,
  client: siteClient,
  detail: { provider, ...(method ? { method } : {}) },
})

/** A merge can be asked for again and again by the owner of an identity, which is not always the account's. */
const mergeAttempt = (...entry: Parameters<typeof mergeEntry>) => attemptOf(mergeEntry(...entry))
