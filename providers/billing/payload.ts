/** Parsing that the payloads of all providers share. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { BillingEvent } from '../../domain/billing/event.ts'
import { addonsMax } from '../../domain/billing/plans.ts'
import type { ListedSubscription, ParsedEvent, ResolvedEvent } from './provider.ts'

/** Returns undefined for what is not JSON in UTF-8. A byte order mark is not JSON. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
  } catch {
    return undefined
  }
}

/** Text that Postgres can store: not empty, without control characters and unpaired surrogates. */
export const storableText = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !/[\p{Cc}\p{Surrogate}]/u.test(text), 'contains a control character or an unpaired surrogate')

/** Milliseconds from 1970 to 9998: JavaScript formats other years in a way that Postgres does not accept. */
const storableTime = z
  .number()
  .refine((at) => at >= 0 && at <= Date.UTC(9999, 0), 'is not a time between 1970 and 9999')

/** RFC 3339, also with lower case letters, converted to milliseconds. */
export const rfc3339Time = z
  .string()
  .toUpperCase()
  .pipe(z.iso.datetime({ offset: true }))
  .transform((text) => Date.parse(text))
  .pipe(storableTime)

/** Seconds since 1970, converted to milliseconds. */
export const unixTime = z
  .int()
  .transform((seconds) => seconds * 1000)
  .pipe(storableTime)

/** The provider's name of the event type; empty if it cannot be stored. */
export const parseType = (type: unknown): string => storableText(200).safeParse(type).data ?? ''

/** Our account id in the payload; null if it is missing or cannot be stored. */
export const parseUserRef = (userId: unknown): string | null => storableText(200).safeParse(userId).data ?? null

/** The first issue with its path, such as `data.quantity: Invalid input`. Contains nothing of the payload's values. */
export const describeIssue = ({ issues }: z.ZodError): string => {
  const [issue] = issues
  return `${issue?.path.join('.') || 'body'}: ${issue?.message ?? 'not as documented'}`
}

/** Limits a number of add-ons to those on sale. */
export const clampAddons = (count: number): number => Math.max(0, Math.min(addonsMax, count))

/**
 * Makes an event of test mode unusable, unless it is ignored or unusable already.
 * @param field that states the mode.
 */
export const rejectTestMode = (parsed: ParsedEvent, field: string): ResolvedEvent =>
  parsed.meaning === 'ignored' || parsed.meaning === 'unusable'
    ? parsed
    : {
        key: parsed.key,
        type: parsed.type,
        meaning: 'unusable',
        problem: `${field}: test mode is not accepted (SVC_BILLING_TEST_MODE)`,
        userRef: parsed.userRef,
      }

/** The fields of a billing event that adapters set; the others are null. */
export type EventFields = Pick<BillingEvent, 'key' | 'action' | 'provider' | 'subscriptionId' | 'kind' | 'at'> &
  Partial<BillingEvent>

export const createBillingEvent = (fields: EventFields): BillingEvent => ({
  quantity: null,
  invoiceId: null,
  amount: null,
  periodStart: null,
  periodEnd: null,
  ...fields,
})

/** An entry of a provider's list. Its key is a hash of its content, so that an unchanged subscription keeps its key. */
export const createListedSubscription = (
  userRef: string | null,
  fields: Omit<EventFields, 'key'>,
): ListedSubscription => {
  const { key: _, ...content } = createBillingEvent({ ...fields, key: '' })
  const sorted = Object.entries(content).sort(([a], [b]) => (a < b ? -1 : 1))
  return { userRef, event: { ...content, key: `reconciled:${sha256Hex(JSON.stringify(sorted))}` } }
}

export const sha256Hex = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')
