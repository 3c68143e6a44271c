/** Changes that the owner makes to an account: its password, its address, its deletion. */
import { z } from 'zod'
import { accepted, noContent, ok, route } from '../../http/route.ts'
import { EmailAddress, EmptyObject, timestamp } from '../../http/schemas.ts'
import { restoreAccount, scheduleAccountDeletion } from '../../identity/account-deletion.ts'
import { confirmEmailChange, requestEmailChange } from '../../identity/email-change.ts'
import { describeOwnerProof } from '../../identity/owner-proof.ts'
import { changePassword as change } from '../../identity/password-change.ts'
import { NewPassword } from '../../identity/passwords.ts'

/** Sent by the owner of an account that has one; other accounts need a recent sign-in. */
const OwnPassword = z
  .string()
  .optional()
  .describe('Required if the account has a password. Otherwise the sign-in must be at most 10 minutes old.')

export const show = route.user({
  summary: 'Show the security of the account',
  answers: {
    200: z.object({
      has_password: z.boolean(),
      is_sign_in_recent: z
        .boolean()
        .describe('Whether this sign-in is recent enough to change an account without a password.'),
      deletion_grace_seconds: z.int(),
    }),
  },
  refuses: [],
  handle: async ({ caller }, services) => {
    const { hasPassword, isSignInRecent } = await describeOwnerProof(services, caller)
    return ok({
      has_password: hasPassword,
      is_sign_in_recent: isSignInRecent,
      deletion_grace_seconds: services.config.accountDeletionSeconds,
    })
  },
})

export const changePassword = route.user({
  summary: 'Change the password',
  body: z.object({ current_password: z.string(), new_password: NewPassword }),
  answers: { 204: null },
  refuses: ['invalid_credentials', 'password_not_set'],
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    const passwords = { currentPassword: body.current_password, newPassword: body.new_password }
    await change(services, caller, passwords, { ip, socket })
    return noContent()
  },
})

export const changeEmail = route.user({
  summary: 'Request a change of the email address',
  body: z.object({ email: EmailAddress, password: OwnPassword }),
  answers: { 202: EmptyObject },
  refuses: ['invalid_credentials', 'recent_sign_in_required'],
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    await requestEmailChange(services, caller, { email: body.email, password: body.password }, { ip, socket })
    return accepted()
  },
})

export const confirmEmail = route.none({
  summary: 'Confirm a change of the email address',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid', 'email_taken'],
  handle: async ({ body, ip }, services) => {
    await confirmEmailChange(services, body.token, ip)
    return noContent()
  },
})

export const scheduleDeletion = route.user({
  summary: 'Schedule the deletion of the account',
  body: z.object({ password: OwnPassword }),
  answers: { 200: z.object({ deletion_due_at: timestamp }) },
  refuses: ['invalid_credentials', 'recent_sign_in_required'],
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    const dueAt = await scheduleAccountDeletion(services, caller, body.password, { ip, socket })
    return ok({ deletion_due_at: dueAt.toISOString() })
  },
})

export const restore = route.user({
  summary: 'Withdraw the deletion of the account',
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller, ip }, services) => {
    await restoreAccount(services, caller, ip)
    return noContent()
  },
})
