/** Changes that the owner makes to an account: its password, its address, its deletion. */
import { z } from 'zod'
import { accepted, noContent, ok } from '../../http/replies.ts'
import { EmptyObject, timestamp } from '../../http/schemas.ts'
import { restoreAccount, scheduleAccountDeletion } from '../../identity/account-deletion.ts'
import { confirmEmailChange, requestEmailChange } from '../../identity/email-change.ts'
import { describeOwnerProof } from '../../identity/owner-proof.ts'
import { changePassword as change } from '../../identity/password-change.ts'
import { NewPassword } from '../../identity/passwords.ts'
import { route } from '../route.ts'
import { EmailAddress } from '../schemas.ts'

/** Sent by the owner of an account that has one; other accounts need a recent sign-in. */
const OwnPassword = z
  .string()
  .optional()
  .describe('Required if the account has a password. Otherwise the sign-in must be at most 10 minutes old.')

export const show = route.user({
  id: 'getAccountSecurity',
  summary: 'Show the security of the account',
  description:
    'What proves the owner of the account before a change, and until when a scheduled deletion can be withdrawn.',
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
  id: 'changePassword',
  summary: 'Change the password',
  description:
    'Sets a new password and ends every other sign-in of the account. The current password is required; an account without one gets its first password by a reset link.',
  body: z.object({ current_password: z.string(), new_password: NewPassword }),
  answers: { 204: null },
  refuses: ['invalid_credentials', 'password_not_set'],
  examples: {
    requests: {
      both: {
        summary: 'The present password and the next one',
        value: { current_password: 'correct horse battery staple', new_password: 'another long passphrase' },
      },
    },
  },
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    const passwords = { currentPassword: body.current_password, newPassword: body.new_password }
    await change(services, caller, passwords, { ip, socket })
    return noContent()
  },
})

export const changeEmail = route.user({
  id: 'requestEmailChange',
  summary: 'Request a change of the email address',
  description:
    'Mails a link to the new address, and the address changes when the link is opened. The reply does not reveal whether the address is taken. The password is required, or a recent sign-in for an account without one.',
  body: z.object({ email: EmailAddress, password: OwnPassword }),
  answers: { 202: EmptyObject },
  refuses: ['invalid_credentials', 'recent_sign_in_required'],
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    await requestEmailChange(services, caller, { email: body.email, password: body.password }, { ip, socket })
    return accepted()
  },
})

export const confirmEmail = route.none({
  id: 'confirmEmailChange',
  summary: 'Confirm a change of the email address',
  description:
    'Changes the address with the token of the mailed link, which works once. Refused if another account has the address by then.',
  body: z.object({ token: z.string() }),
  answers: { 204: null },
  refuses: ['token_invalid', 'email_taken'],
  handle: async ({ body, ip }, services) => {
    await confirmEmailChange(services, body.token, ip)
    return noContent()
  },
})

export const scheduleDeletion = route.user({
  id: 'scheduleDeletion',
  summary: 'Schedule the deletion of the account',
  description:
    'Ends the relays of the account, cancels its subscriptions and ends its other sign-ins at once. The account itself is deleted at `deletion_due_at`; until then the deletion can be withdrawn. Safe to repeat.',
  body: z.object({ password: OwnPassword }),
  answers: { 200: z.object({ deletion_due_at: timestamp }) },
  refuses: ['invalid_credentials', 'recent_sign_in_required'],
  examples: {
    replies: {
      200: { scheduled: { summary: 'Scheduled', value: { deletion_due_at: '2026-08-08T18:30:00.000Z' } } },
    },
  },
  handle: async ({ caller, body, ip, incoming: { socket } }, services) => {
    const dueAt = await scheduleAccountDeletion(services, caller, body.password, { ip, socket })
    return ok({ deletion_due_at: dueAt.toISOString() })
  },
})

export const restore = route.user({
  id: 'withdrawDeletion',
  summary: 'Withdraw the deletion of the account',
  description: 'Withdraws the scheduled deletion. Cancelled subscriptions stay cancelled. Safe to repeat.',
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller, ip }, services) => {
    await restoreAccount(services, caller, ip)
    return noContent()
  },
})
