/** Schemas that routes of several nouns share. */
import { z } from 'zod'
import { parseEmailAddress } from '../../domain/identity/email-address.ts'
import { storableText } from '../http/schemas.ts'

/** The name that a client has chosen for a connection. */
export const ConnectionId = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')

/** Why an operator acts. Recorded in the audit, and not shown to the owner of the account. */
export const Reason = storableText(500).optional()
/** What the owner of a session may read about an act of an operator, as plain text. */
export const PublicReason = storableText(200)
  .optional()
  .describe('Shown to the owner in the history of the session, unlike `reason`.')

/** The body of an act of operators that needs nothing else. */
export const ReasonOnly = z.object({ reason: Reason })

/** As a part of the detail of an audit entry. */
export const reasonDetail = ({ reason }: { readonly reason?: string | undefined }) =>
  reason === undefined ? {} : { reason }

export const publicReasonDetail = (body: { readonly public_reason?: string | undefined }) =>
  body.public_reason === undefined ? {} : { public_reason: body.public_reason }

/** Of the account that a row concerns, for operators. */
export const maskedEmail = z
  .string()
  .nullable()
  .describe('The masked address of the account, such as `s•••@e•••.com`. Null without an account or an address.')

export const EmailAddress = z
  .string()
  .describe('An email address of at most 254 characters, compared without regard to case.')
  .transform((text, context) => {
    const parsed = parseEmailAddress(text)
    if ('address' in parsed) return parsed.address
    context.addIssue({ code: 'custom', message: parsed.problem })
    return z.NEVER
  })
