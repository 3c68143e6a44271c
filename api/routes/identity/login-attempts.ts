/** Plugin logins: started and polled by a plugin, approved or denied by a user in the browser. */
import { z } from 'zod'
import { loginAttemptSeconds } from '../../../db/identity/login-attempts.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { present } from '../../http/present.ts'
import { Refusal } from '../../http/refusals.ts'
import { created, noContent, ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import {
  approvePluginLogin,
  denyPluginLogin,
  findPluginLogin,
  pollPluginLogin,
  pollSeconds,
  startPluginLogin,
} from '../../identity/plugin-logins.ts'
import { createTokenSet, exampleTokenSet, TokenSet } from '../../identity/token-sets.ts'
import { route } from '../route.ts'

const clientNameLengthMax = 64

/** Users read the name on the approval page. Invisible, control and bidirectional formatting characters are removed. */
const ClientName = z
  .string()
  .describe(`The name of the plugin on the approval page: 1 to ${clientNameLengthMax} characters.`)
  .transform((text) => text.replaceAll(/[\p{C}\p{Default_Ignorable_Code_Point}\u2800]/gu, '').trim())
  .refine(
    (text) => text !== '' && [...text].length <= clientNameLengthMax,
    `must have 1 to ${clientNameLengthMax} visible characters`,
  )

const startExamples: OperationExamples = {
  requests: { plugin: { summary: 'A plugin', value: { client_name: 'OBS plugin' } } },
  replies: {
    201: {
      started: {
        summary: 'A login attempt',
        value: {
          login_attempt_id: 'c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
          authorize_url: 'https://relay.example.com/login?attempt=c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
          poll_token: 'poll_example_9fTz3bNc',
          user_code: 'ABCD-2345',
          expires_in: 300,
          interval: 2,
        },
      },
    },
  },
}

export const start = route.none({
  id: 'startPluginLogin',
  summary: 'Start a plugin login',
  description:
    'Starts a login attempt of 5 minutes. Open `authorize_url` in the browser of the user, show `user_code`, and poll with `poll_token`. The page in the browser shows the same code, so that the user recognises the attempt. Only the approval in the browser signs the plugin in.',
  secret: true,
  body: z.object({ client_name: ClientName.default('plugin') }),
  answers: {
    201: z.object({
      login_attempt_id: id,
      authorize_url: z.url(),
      poll_token: z.string(),
      user_code: z.string(),
      expires_in: z.int(),
      interval: z.int(),
    }),
  },
  refuses: [],
  examples: startExamples,
  handle: async ({ body, ip, userAgent }, services) => {
    const started = await startPluginLogin(services, { clientName: body.client_name, ip, userAgent })
    return created({
      login_attempt_id: started.attemptId,
      authorize_url: `${services.config.siteUrl}/login?attempt=${started.attemptId}`,
      poll_token: started.pollToken,
      user_code: started.userCode,
      expires_in: loginAttemptSeconds,
      interval: pollSeconds,
    })
  },
})

const pollExamples: OperationExamples = {
  requests: {
    attempt: {
      summary: 'The attempt that was started',
      value: {
        login_attempt_id: 'c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
        poll_token: 'poll_example_9fTz3bNc',
      },
    },
  },
  replies: {
    200: {
      pending: { summary: 'The user has not decided yet', value: { status: 'pending', interval: 2 } },
      complete: { summary: 'Approved', value: { status: 'complete', ...exampleTokenSet } },
    },
  },
}

export const poll = route.none({
  id: 'pollPluginLogin',
  summary: 'Poll a plugin login',
  description:
    'Returns `pending` until the user has decided, then the token set exactly once. Poll every `interval` seconds: faster than once a second is refused with 429, and the attempt goes on.\n\nThe attempt ends after 300 seconds (410 `attempt_expired`), also if it was approved. A denied attempt is 403 `attempt_denied`; a wrong token is 404 `not_found`, like an unknown attempt.',
  secret: true,
  body: z.object({ login_attempt_id: z.string(), poll_token: z.string() }),
  answers: {
    200: z.discriminatedUnion('status', [
      z.object({ status: z.literal('pending'), interval: z.int() }),
      TokenSet.extend({ status: z.literal('complete') }),
    ]),
  },
  refuses: ['not_found', 'attempt_denied', 'attempt_expired', 'attempt_consumed', 'account_disabled'],
  examples: pollExamples,
  handle: async ({ body, ip, userAgent }, services) => {
    const attemptId = id.safeParse(body.login_attempt_id)
    if (!attemptId.success) throw new Refusal('not_found')
    const opened = await pollPluginLogin(services, attemptId.data, body.poll_token, { ip, userAgent })
    if (!opened) return ok({ status: 'pending', interval: pollSeconds })
    return ok({ status: 'complete', ...(await createTokenSet(services, opened)) })
  },
})

const AttemptView = z.object({
  login_attempt_id: id,
  status: z.enum(['pending', 'approved', 'denied', 'consumed', 'expired']),
  user_code: z.string(),
  client_name: z.string(),
  ip: z.string(),
  user_agent: z.string(),
  created_at: timestamp,
  expires_at: timestamp,
})

export const read = route.user({
  id: 'getLoginAttempt',
  summary: 'Show a plugin login',
  description:
    'Shows which plugin asks for access, from where and since when. Any signed-in user may read an undecided attempt.',
  params: z.object({ id }),
  answers: {
    200: AttemptView,
  },
  refuses: ['not_found'],
  handle: async ({ caller, params }, services) => {
    const attempt = await findPluginLogin(services, params.id, caller.userId)
    const status = attempt.isExpired ? 'expired' : attempt.status
    return ok(present(AttemptView, { ...attempt, loginAttemptId: attempt.id, status }))
  },
})

const decisionParts = {
  params: z.object({ id }),
  answers: { 204: null },
} as const

export const approve = route.user({
  ...decisionParts,
  id: 'approveLoginAttempt',
  summary: 'Approve a plugin login',
  description:
    'Lets the plugin sign in to the account of the caller. Compare the code with the one that the plugin shows first. Safe to repeat.',
  refuses: ['not_found', 'attempt_denied', 'attempt_expired'],
  handle: async ({ caller, params, ip }, services) => {
    await approvePluginLogin(services, params.id, caller, ip)
    return noContent()
  },
})

export const deny = route.user({
  ...decisionParts,
  id: 'denyLoginAttempt',
  summary: 'Deny a plugin login',
  description: 'Denies the plugin, also after an approval whose tokens it has not collected yet. Safe to repeat.',
  refuses: ['not_found', 'attempt_consumed', 'attempt_expired'],
  handle: async ({ caller, params, ip }, services) => {
    await denyPluginLogin(services, params.id, caller, ip)
    return noContent()
  },
})
