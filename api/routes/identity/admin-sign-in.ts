/** Sign-in to the operator console: exchanges the operator password for a token that ends soon. */
import { z } from 'zod'
import { recordAuditEntry } from '../../../db/audit.ts'
import { deleteOperatorSession, insertOperatorSession } from '../../../db/identity/operator-sessions.ts'
import { Refusal } from '../../http/refusals.ts'
import { created, noContent } from '../../http/replies.ts'
import { EmptyObject, timestamp } from '../../http/schemas.ts'
import { passwordHashField } from '../../identity/operator-credentials.ts'
import { createSecretToken, hashSecretToken } from '../../identity/secret-tokens.ts'
import { route } from '../route.ts'

export const signIn = route.operator({
  id: 'openOperatorSession',
  summary: 'Open an operator session',
  description:
    'Exchanges the operator password (HTTP Basic) for the token of a session that ends soon, and after 15 minutes without use. Refused with the token of a session: it cannot prolong itself. Wrong passwords are limited and audited.',
  body: EmptyObject,
  answers: {
    201: z.object({
      operator_token: z.string().describe('Sent as `Authorization: Bearer` to the routes of operators.'),
      expires_at: timestamp.describe('The session ends then, or after 15 minutes without use.'),
    }),
  },
  refuses: [],
  secret: true,
  examples: {
    replies: {
      201: {
        session: {
          summary: 'An operator session',
          value: { operator_token: 'operator_example_5tGb8yHn', expires_at: '2026-08-01T19:00:00.000Z' },
        },
      },
    },
  },
  handle: async ({ caller, ip }, { sql, sealing, config }) => {
    // Otherwise a session could be prolonged for ever.
    if (caller.sessionId !== undefined || config.operatorPassword === undefined)
      throw new Refusal('invalid_operator', { message: 'Sign in with the operator password.' })
    const token = createSecretToken()
    const session = {
      tokenHash: hashSecretToken(token),
      passwordHash: sealing.hash(config.operatorPassword, passwordHashField),
      seconds: config.operatorSessionSeconds,
    }
    const expiresAt = await sql.begin(async (tx) => {
      await recordAuditEntry(tx, { initiator: 'operator', action: 'operator_signed_in', ip })
      return insertOperatorSession(tx, session)
    })
    return created({ operator_token: token, expires_at: expiresAt.toISOString() })
  },
})

export const signOut = route.operator({
  id: 'closeOperatorSession',
  summary: 'Close the operator session',
  description: 'Ends the session of the token. Does nothing with the password. Safe to repeat.',
  body: EmptyObject,
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller, ip }, { sql }) => {
    const { sessionId } = caller
    if (sessionId !== undefined)
      await sql.begin(async (tx) => {
        await recordAuditEntry(tx, { initiator: 'operator', action: 'operator_signed_out', ip })
        await deleteOperatorSession(tx, sessionId)
      })
    return noContent()
  },
})
