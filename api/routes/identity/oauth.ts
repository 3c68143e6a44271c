/** Sign-in, linking and proofs of ownership through OAuth providers. */
import { z } from 'zod'
import { authorizationRequestSeconds } from '../../../db/identity/authorization-requests.ts'
import { oauthProviderNames } from '../../../providers/oauth/provider.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { created, noContent, ok } from '../../http/replies.ts'
import { id } from '../../http/schemas.ts'
import { completeAuthorization, startAuthorization } from '../../identity/authorization-requests.ts'
import { type PendingMerge, proveMerge, type RequestedMerge } from '../../identity/merges.ts'
import { linkIdentity, signInWithIdentity, unlinkIdentity } from '../../identity/oauth-accounts.ts'
import { TermsVersion } from '../../identity/terms.ts'
import { createTokenSet, exampleTokenSet, TokenSet } from '../../identity/token-sets.ts'
import { route } from '../route.ts'

const ByProvider = z.object({ provider: z.enum(oauthProviderNames) })

const providersExamples: OperationExamples = {
  replies: {
    200: {
      providers: {
        summary: 'One of three is configured',
        value: {
          providers: [
            { provider: 'twitch', configured: true },
            { provider: 'google', configured: false },
            { provider: 'discord', configured: false },
          ],
        },
      },
    },
  },
}

export const providers = route.none({
  id: 'listOauthProviders',
  summary: 'List the sign-in providers',
  description: 'All providers that the service supports, and whether sign-in through each one is configured.',
  answers: {
    200: z.object({
      providers: z.array(z.object({ provider: z.enum(oauthProviderNames), configured: z.boolean() })),
    }),
  },
  refuses: [],
  examples: providersExamples,
  handle: (_, { oauthProviders }) =>
    ok({
      providers: oauthProviderNames.map((provider) => ({ provider, configured: oauthProviders.has(provider) })),
    }),
})

const startExamples: OperationExamples = {
  requests: {
    sign_in: { summary: 'Sign in', value: { intent: 'sign_in' } },
    link: { summary: 'Link to the account of the access token', value: { intent: 'link', scopes: 'identity' } },
    merge: {
      summary: 'Prove the ownership of an account',
      value: { intent: 'merge', merge_request_id: '37693cfc-7480-4e6a-a1b2-9d8c7b6a5f4e' },
    },
  },
  replies: {
    201: {
      started: {
        summary: 'The address of the provider',
        value: {
          authorization_url: 'https://id.twitch.tv/oauth2/authorize?client_id=example&state=example',
          binding: 'binding_example_2kPn8tJx',
          expires_in: 600,
        },
      },
    },
  },
}

export const start = route.maybeUser({
  id: 'startOauth',
  summary: 'Start an OAuth round trip',
  description:
    'Starts an OAuth round trip. Send the browser to `authorization_url`, and keep `binding` in that browser: the callback must present it. The round trip lasts 10 minutes and can be completed once.\n\nThe intent `link` requires the access token of the account; `merge` requires the id of a merge request.',
  secret: true,
  params: ByProvider,
  body: z.object({
    intent: z.enum(['sign_in', 'link', 'merge']),
    merge_request_id: id.optional().describe('The merge request to prove; only with intent `merge`.'),
    scopes: z
      .enum(['identity', 'chat'])
      .default('identity')
      .describe('`chat` also requests access to read and write chat; only with intent `link`.'),
    terms_version: TermsVersion,
  }),
  answers: { 201: z.object({ authorization_url: z.url(), binding: z.string(), expires_in: z.int() }) },
  refuses: ['not_available', 'not_found', 'merge_expired', 'terms_outdated'],
  examples: startExamples,
  handle: async ({ caller, params, body }, services) => {
    const { intent, merge_request_id: mergeRequestId, scopes, terms_version: termsVersion } = body
    const options = { intent, mergeRequestId, scopes, termsVersion }
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

const callbackExamples: OperationExamples = {
  requests: {
    callback: {
      summary: 'The parameters of the callback',
      value: {
        code: 'code_example_6mVb9cDs',
        state: 'state_example_8sWq3mNd',
        binding: 'binding_example_2kPn8tJx',
      },
    },
  },
  replies: {
    200: {
      signed_in: { summary: 'Signed in', value: { status: 'signed_in', ...exampleTokenSet } },
      linked: { summary: 'Linked', value: { status: 'linked' } },
      merge_required: {
        summary: 'An account has the same address',
        value: {
          status: 'merge_required',
          merge_request_id: '37693cfc-7480-4e6a-a1b2-9d8c7b6a5f4e',
          merge_token: 'merge_example_7dRx1vLp',
          sign_in_methods: ['password', 'twitch'],
          expires_in: 600,
        },
      },
    },
  },
}

export const callback = route.none({
  id: 'completeOauth',
  summary: 'Complete an OAuth round trip',
  description:
    "Exchanges the provider's code. Depending on the intent the reply is a token set, `linked`, or `merge_required`: an account with the same verified address exists, and its owner must confirm before the provider account is linked to it.\n\nA `state` that is wrong, used, expired or of another browser is refused with `token_invalid`.",
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
  examples: callbackExamples,
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
  id: 'unlinkProvider',
  summary: 'Unlink a provider',
  description:
    'Removes the provider from the account. Refused with `last_sign_in_method` if the account could no longer be signed in to. Safe to repeat.',
  params: ByProvider,
  answers: { 204: null },
  refuses: ['not_found', 'last_sign_in_method'],
  handle: async ({ caller, params, ip }, services) => {
    await unlinkIdentity(services, caller.userId, params.provider, ip)
    return noContent()
  },
})
