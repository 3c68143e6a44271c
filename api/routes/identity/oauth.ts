/** Sign-in, linking and proofs of ownership through OAuth providers. */
import { z } from 'zod'
import { authorizationRequestSeconds } from '../../../db/identity/authorization-requests.ts'
import { oauthProviderNames } from '../../../providers/oauth/provider.ts'
import { created, noContent, ok, route } from '../../http/route.ts'
import { id } from '../../http/schemas.ts'
import { completeAuthorization, startAuthorization } from '../../identity/authorization-requests.ts'
import { type PendingMerge, proveMerge, type RequestedMerge } from '../../identity/merges.ts'
import { linkIdentity, signInWithIdentity, unlinkIdentity } from '../../identity/oauth-accounts.ts'
import { createTokenSet, TokenSet } from '../../identity/token-sets.ts'

const ByProvider = z.object({ provider: z.enum(oauthProviderNames) })

export const providers = route.none({
  summary: 'List the sign-in providers',
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

export const start = route.maybeUser({
  summary: 'Start an OAuth round trip',
  secret: true,
  params: ByProvider,
  body: z.object({
    intent: z.enum(['sign_in', 'link', 'merge']),
    merge_request_id: id.optional().describe('The merge request to prove; only with intent `merge`.'),
    scopes: z
      .enum(['identity', 'chat'])
      .default('identity')
      .describe('`chat` also requests access to read and write chat; only with intent `link`.'),
  }),
  answers: { 201: z.object({ authorization_url: z.url(), binding: z.string(), expires_in: z.int() }) },
  refuses: ['not_available', 'not_found', 'merge_expired'],
  handle: async ({ caller, params, body }, services) => {
    const { intent, merge_request_id: mergeRequestId, scopes } = body
    const options = { intent, mergeRequestId, scopes }
    const { url, binding } = await startAuthorization(services, params.provider, options, caller)
    return created({ authorization_url: url.href, binding, expires_in: authorizationRequestSeconds })
  },
})

const MergeRequired = z.object({
  status: z.literal('merge_required'),
  merge_request_id: id,
  merge_token: z
    .string()
    .optional()
    .describe('Only when the merge starts; absent in the response to the round trip that proved its owner.'),
  sign_in_methods: z.array(z.enum(['password', ...oauthProviderNames])),
  expires_in: z.int(),
})

export const callback = route.none({
  summary: 'Complete an OAuth round trip',
  secret: true,
  params: ByProvider,
  body: z.object({
    code: z.string().min(1).max(4096),
    // A missing value is refused like a wrong one: `token_invalid` instead of `invalid_request`.
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
    const { request, callback } = await completeAuthorization(services, params.provider, { ...body, ip, userAgent })
    switch (request.intent) {
      case 'link':
        await linkIdentity(services, request, callback, request.scopes === 'chat')
        return ok({ status: 'linked' })
      case 'merge':
        return ok(presentMerge(await proveMerge(services, request.mergeRequestId, callback.identity, ip)))
      case 'sign_in': {
        const result = await signInWithIdentity(services, callback)
        if ('mergeRequestId' in result) return ok(presentMerge(result))
        return ok({ status: 'signed_in', ...(await createTokenSet(services, result)) })
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

export const unlink = route.user({
  summary: 'Unlink a provider',
  params: ByProvider,
  answers: { 204: null },
  refuses: ['not_found', 'last_sign_in_method'],
  handle: async ({ caller, params, ip }, services) => {
    await unlinkIdentity(services, caller.userId, params.provider, ip)
    return noContent()
  },
})
