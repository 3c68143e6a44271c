/**
 * Tickets: the proof that a decision about a request was made in the browser that comes back with it. The browser that
 * started the request has its cookie, and the one that decided has the ticket. Only a browser with both continues to
 * the app, so an approval of a request that another browser started is worth nothing.
 */
import { areEqualSecrets } from '../../platform/equal-secrets.ts'
import type { Sealing } from '../../platform/sealing.ts'

const field = 'app_request_ticket'

const textOf = (requestId: string, userId: string): string => `${requestId} ${userId}`

/** The same for each decision of the user about the request, so that deciding can be repeated. */
export const createTicket = (sealing: Sealing, requestId: string, userId: string): string =>
  sealing.hash(textOf(requestId, userId), field).toString('base64url')

export const isTicketOf = (sealing: Sealing, ticket: string, requestId: string, userId: string): boolean =>
  sealing.hashes(textOf(requestId, userId), field).some((hash) => areEqualSecrets(hash.toString('base64url'), ticket))
