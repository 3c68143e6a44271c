/** A forgotten password: whoever reads the account's mail chooses another, and everybody else is out. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { isOwnershipProved, listLinkedIdentities, secureAccount } from '../../db/account-proof.ts'
import { recordAuditEntry } from '../../db/audit.ts'
import { lockUserByEmail, setPassword } from '../../db/users.ts'
import { oauthProviderNames } from '../../providers/oauth/provider.ts'
import { accepted, noContent, ok, route } from '../http/route.ts'
import { Nothing } from '../http/schemas.ts'
import { mailLink, ownerOfLink, useLink } from '../identity/mail-links.ts'
import { NewPassword } from '../identity/passwords.ts'
import { Email } from './accounts.ts'
import { newStreamToken } from './stream-tokens.ts'

/** Longer than the work takes: the link costs an address with an account one write more than it costs another. */
const answerMillis = 50

export const forgot = route({
  method: 'POST',
  path: '/auth/password/forgot',
  summary: 'Ask for a link to choose another password. Tells nothing of whether the address has an account',
  caller: 'none',
  limit: 'forgot',
  body: z.object({ email: Email }),
  answers: { 202: Nothing },
  refuses: [],
  handle: async ({ body, ip }, services) => {
    const answerTime = sleep(answerMillis)
    // The same statements and a write for an address without an account too, or the time would tell on a busy day.
    const userId = (await services.sql.begin(async (tx) => {
      const account = await lockUserByEmail(tx, body.email)
      await mailLink(tx, services, 'reset_password', account)
      return account
    })) as string | undefined
    await services.auditAttempt({ initiator: 'user', action: 'password_reset_requested', userId, ip })
    await answerTime
    return accepted()
  },
})

export const preview = route({
  method: 'POST',
  path: '/auth/password/reset/preview',
  summary:
    'What choosing another password with a link changes besides the password. Uses the link up as little as opening it',
  caller: 'none',
  secret: true,
  body: z.object({ token: z.string() }),
  answers: {
    200: z.object({
      linked_accounts: z
        .array(z.object({ provider: z.enum(oauthProviderNames), stays: z.boolean() }))
        .describe('Those that are linked. One stays when its provider vouches for the address of the account.'),
      replaces_stream_token: z
        .boolean()
        .describe(
          'Whether the stream token is replaced and the relays end: the first time that the owner of the address resets an account that another person may have opened.',
        ),
    }),
  },
  refuses: ['token_invalid'],
  handle: async ({ body }, { sql }) => {
    const userId = await ownerOfLink(sql, 'reset_password', body.token)
    const [linked, isProved] = await Promise.all([listLinkedIdentities(sql, userId), isOwnershipProved(sql, userId)])
    return ok({ linked_accounts: linked, replaces_stream_token: !isProved })
  },
})

export const reset = route({
  method: 'POST',
  path: '/auth/password/reset',
  summary: 'Choose another password with the link from the mail. Ends every sign-in of the account',
  caller: 'none',
  body: z.object({ token: z.string(), password: NewPassword }),
  answers: { 204: null },
  refuses: ['token_invalid'],
  handle: async ({ body, ip }, { sql, sealing, passwords, deliveries }) => {
    // Before the hashing, which is expensive: a request without a link gets none of it.
    const userId = await ownerOfLink(sql, 'reset_password', body.token)
    const passwordHash = await passwords.hash(body.password, ip)
    const { disconnected } = await sql.begin(async (tx) => {
      const email = await useLink(tx, 'reset_password', body.token, userId)
      const secured = await secureAccount(tx, sealing, userId, {
        email,
        newStreamToken: newStreamToken(),
        reason: 'password_reset',
      })
      await setPassword(tx, userId, passwordHash)
      const detail = { sign_ins_ended: secured.authSessionsRevoked, unlinked: secured.unlinked.join(' ') }
      await recordAuditEntry(tx, { initiator: 'user', action: 'password_reset', userId, ip, detail })
      return secured
    })
    for (const session of disconnected) deliveries.send(session)
    return noContent()
  },
})
