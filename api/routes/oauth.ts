/** Signing in through providers: the browser is sent there with secrets of its own, and comes back with them. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import {
  type AuthorizationPurpose,
  authorizationRequestSeconds,
  consumeAuthorizationRequest,
  insertAuthorizationRequest,
} from '../../db/authorization-requests.ts'
import { findMergeRequest } from '../../db/merge-requests.ts'
import {
  type OAuthAuthorizationRequest,
  OAuthDeniedError,
  type OAuthProvider,
  OAuthProviderError,
  type OAuthProviderName,
  oauthProviderNames,
} from '../../providers/oauth/provider.ts'
import { Refusal } from '../http/refusals.ts'
import { created, noContent, ok, route } from '../http/route.ts'
import { id } from '../http/schemas.ts'
import type { User } from '../identity/access-tokens.ts'
import { type Arrival, link, signIn, unlink as unlinkFrom } from '../identity/oauth-accounts.ts'
import type { Services } from '../services.ts'
import { hashOfToken, newSecretToken, TokenSet, tokenSet } from './auth-sessions.ts'
import { type PendingMerge, provable, prove, type RequestedMerge } from './merges.ts'

const ByProvider = z.object({ provider: z.enum(oauthProviderNames) })
const displayNames: Readonly<Record<OAuthProviderName, string>> = {
  twitch: 'Twitch',
  google: 'Google',
  discord: 'Discord',
}
const retrySeconds = 5

export const providers = route({
  method: 'GET',
  path: '/auth/oauth/providers',
  summary: 'Which providers one can sign in with here',
  caller: 'none',
  answers: {
    200: z.object({
      providers: z.array(z.object({ provider: z.enum(oauthProviderNames), configured: z.boolean() })),
    }),
  },
  refuses: [],
  handle: (_, { oauthProviders }) =>
    ok({
      providers: oauthProviderNames.map((provider) => ({ provider, configured: oauthProviders.has(provider) })),
    }),
})

const StartBody = z.object({
  intent: z.enum(['sign_in', 'link', 'merge']),
  merge_request_id: id.optional().describe('The merge that the owner is to be proved for; with intent `merge` only.'),
  scopes: z
    .enum(['identity', 'chat'])
    .default('identity')
    .describe('`chat` asks to read and write the chat too; with intent `link` only.'),
})

export const start = route({
  method: 'POST',
  path: '/auth/oauth/{provider}/start',
  summary: 'Begin a round trip to a provider. Linking needs the access token of the account',
  caller: 'maybe_user',
  limit: 'oauth_start',
  secret: true,
  params: ByProvider,
  body: StartBody,
  answers: { 201: z.object({ authorization_url: z.url(), binding: z.string(), expires_in: z.int() }) },
  refuses: ['not_available', 'not_found', 'merge_expired'],
  handle: async ({ caller, params, body }, services) => {
    const provider = configured(services, params.provider)
    const purpose = await purposeOf(services, body, caller)
    const state = newSecretToken()
    const binding = newSecretToken()
    const round = roundOf(services, provider.name, { state, binding, scopes: body.scopes })
    const url = await provider.authorizationUrl(round).catch(inOurWords(services, provider.name))
    const secrets = { stateHash: hashOfToken(state), bindingHash: hashOfToken(binding), provider: provider.name }
    // While the provider was asked, the account may have ended the merge.
    const begun = await insertAuthorizationRequest(services.sql, secrets, { ...purpose, scopes: body.scopes })
    if (!begun) throw new Refusal('not_found')
    return created({ authorization_url: url.href, binding, expires_in: authorizationRequestSeconds })
  },
})

function configured({ oauthProviders }: Services, name: OAuthProviderName): OAuthProvider {
  const provider = oauthProviders.get(name)
  if (!provider)
    throw new Refusal('not_available', { message: `Signing in with ${displayNames[name]} is not set up here.` })
  return provider
}

/** What the round trip is for, if its caller may ask for that. */
async function purposeOf(
  { sql }: Services,
  { intent, merge_request_id: mergeRequestId, scopes }: z.output<typeof StartBody>,
  caller: User | undefined,
): Promise<AuthorizationPurpose> {
  if (scopes === 'chat' && intent !== 'link')
    throw new Refusal('invalid_request', { message: 'body field scopes: `chat` goes with intent `link` only' })
  if (intent === 'sign_in') return { intent }
  if (intent === 'link') {
    if (!caller) throw new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer' } })
    return { intent, userId: caller.userId, authSessionId: caller.authSessionId }
  }
  if (!mergeRequestId)
    throw new Refusal('invalid_request', { message: 'body field merge_request_id: goes with intent `merge`' })
  provable(await findMergeRequest(sql, mergeRequestId))
  return { intent, mergeRequestId }
}

interface RoundSecrets extends Pick<OAuthAuthorizationRequest, 'state' | 'scopes'> {
  readonly binding: string
}

/**
 * The same round at both ends of the trip. PKCE's verifier and the nonce follow from what only the browser holds, so no row
 * of ours has them: who reads the database can't complete anybody's sign-in.
 */
const roundOf = (
  { config }: Services,
  provider: OAuthProviderName,
  { state, binding, scopes }: RoundSecrets,
): OAuthAuthorizationRequest => ({
  state,
  verifier: derived('verifier', binding),
  nonce: derived('nonce', binding),
  redirectUri: `${config.siteUrl}/oauth/${provider}/callback`,
  scopes,
})

const derived = (what: 'verifier' | 'nonce', binding: string): string =>
  createHash('sha256').update(`${what}:${binding}`).digest('base64url')

const MergeRequired = z.object({
  status: z.literal('merge_required'),
  merge_request_id: id,
  merge_token: z
    .string()
    .optional()
    .describe('Only where the merge begins; not in the answer to the round trip that proved its owner.'),
  sign_in_methods: z.array(z.enum(['password', ...oauthProviderNames])),
  expires_in: z.int(),
})

export const callback = route({
  method: 'POST',
  path: '/auth/oauth/{provider}/callback',
  summary: 'Complete a round trip: sign in, link, or prove whose account a merge is about',
  // Not counted: it takes a round trip that was, and each one once.
  caller: 'none',
  secret: true,
  params: ByProvider,
  body: z.object({
    code: z.string().min(1).max(4096),
    // Missing ones are refused as wrong ones are: the browser lost them, or never had them.
    state: z.string().max(256).default(''),
    binding: z.string().max(256).default(''),
    iss: z.string().max(2048).optional(),
  }),
  answers: {
    200: z.discriminatedUnion('status', [
      TokenSet.extend({ status: z.literal('signed_in') }),
      z.object({ status: z.literal('linked') }),
      MergeRequired,
    ]),
  },
  refuses: [
    'not_available',
    'token_invalid',
    'unauthorized',
    'invalid_credentials',
    'account_disabled',
    'not_found',
    'merge_expired',
    'provider_already_linked',
  ],
  handle: async ({ params, body, ip, userAgent }, services) => {
    const provider = configured(services, params.provider)
    const secrets = {
      stateHash: hashOfToken(body.state),
      bindingHash: hashOfToken(body.binding),
      provider: provider.name,
    }
    const trip = await consumeAuthorizationRequest(services.sql, secrets)
    if (!trip)
      throw new Refusal('token_invalid', { message: 'This sign-in is not under way any more: start it again.' })
    const round = roundOf(services, provider.name, { ...body, scopes: trip.scopes })
    const came = await provider.exchange(round, body).catch(inOurWords(services, provider.name))
    const { providerUserId, verifiedEmail } = came.identity
    const identity = { provider: provider.name, providerUserId }
    const arrival: Arrival = { identity, verifiedEmail, tokens: came.tokens, ip, userAgent }
    switch (trip.intent) {
      case 'link':
        await link(services, trip, arrival, trip.scopes === 'chat')
        return ok({ status: 'linked' })
      case 'merge':
        return ok(presentMerge(await prove(services, trip.mergeRequestId, identity, ip)))
      case 'sign_in': {
        const outcome = await signIn(services, arrival)
        if ('mergeRequestId' in outcome) return ok(presentMerge(outcome))
        return ok({ status: 'signed_in', ...(await tokenSet(services, outcome)) })
      }
    }
  },
})

const presentMerge = (merge: PendingMerge | RequestedMerge): z.infer<typeof MergeRequired> => ({
  status: 'merge_required',
  merge_request_id: merge.mergeRequestId,
  ...('mergeToken' in merge ? { merge_token: merge.mergeToken } : {}),
  sign_in_methods: [...merge.methods],
  expires_in: merge.secondsLeft,
})

/** What a provider's failure means to the person in front of the browser. */
const inOurWords =
  ({ log }: Services, provider: OAuthProviderName) =>
  (error: unknown): never => {
    const name = displayNames[provider]
    if (error instanceof OAuthDeniedError)
      throw new Refusal('token_invalid', { message: `${name} did not confirm it: start it again.` })
    if (!(error instanceof OAuthProviderError)) throw error
    log.warn({ provider, trouble: error.message }, 'a provider did not answer as it should')
    throw new Refusal('temporarily_unavailable', {
      message: `${name} did not answer as it should: try again in a moment.`,
      headers: {
        'Retry-After': String(retrySeconds),
      },
    })
  }

export const unlink = route({
  method: 'DELETE',
  path: '/auth/oauth/{provider}',
  summary: 'Take a provider off the account, as long as another way to sign in is left. Safe to repeat',
  caller: 'user',
  params: ByProvider,
  answers: { 204: null },
  refuses: ['not_found', 'last_sign_in_method'],
  handle: async ({ caller, params, ip }, services) => {
    await unlinkFrom(services, caller.userId, params.provider, ip)
    return noContent()
  },
})
