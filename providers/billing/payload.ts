/** What all providers' payloads have in common for us: the bytes of a payload become a billing event, or a reason why not. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { BillingEvent } from '../../domain/billing-event.ts'
import type { ListedSubscription, ParsedEvent, ResolvedEvent } from './provider.ts'

/** As {@link JSON.parse}; undefined for what is no JSON in UTF-8. A byte order mark is no JSON. */
export function readJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
  } catch {
    return undefined
  }
}

/** Text that a row can hold as it is: not empty, no control characters, no half of a character. */
export const storable = (lengthMax: number) =>
  z
    .string()
    .min(1)
    .max(lengthMax)
    .refine((text) => !/[\p{Cc}\p{Surrogate}]/u.test(text), 'holds a control character or half of a character')

/** From 1970 to 9998: outside of it dates are written in ways that a row does not take. */
const instant = z.number().refine((at) => at >= 0 && at <= Date.UTC(9999, 0), 'is no time between 1970 and 9999')

/** RFC 3339, whose letters may be small ones, to milliseconds. */
export const timeText = z
  .string()
  .toUpperCase()
  .pipe(z.iso.datetime({ offset: true }))
  .transform((text) => Date.parse(text))
  .pipe(instant)

/** Seconds since 1970 to milliseconds. */
export const timeSeconds = z
  .int()
  .transform((seconds) => seconds * 1000)
  .pipe(instant)

/** The provider's name for what happened; empty when it is none that a row can hold. */
export const typeOf = (claimed: unknown): string => storable(200).safeParse(claimed).data ?? ''

/** Our id of an account, as far as the payload has one that a row can hold. */
export const userRefOf = (claimed: unknown): string | null => storable(200).safeParse(claimed).data ?? null

/** What was wrong, with the place: `data.quantity: Invalid input`. Nothing of what the stranger wrote is in it. */
export const whyNot = ({ issues }: z.ZodError): string => {
  const [issue] = issues
  return `${issue?.path.join('.') || 'body'}: ${issue?.message ?? 'not as documented'}`
}

/** Add-ons as we sell them: whoever buys more has the most that there are. */
export const clampQuantity = (count: number): number => Math.max(0, Math.min(3, count))

/** An event of the provider's test mode where that does not count: parked, unless it is ignored or unusable anyway. */
export const refuseTestMode = (parsed: ParsedEvent, field: string): ResolvedEvent =>
  parsed.meaning === 'ignored' || parsed.meaning === 'unusable'
    ? parsed
    : {
        key: parsed.key,
        type: parsed.type,
        meaning: 'unusable',
        why: `${field}: is of test mode, which is not accepted here`,
        userRef: parsed.userRef,
      }

type Told = Pick<BillingEvent, 'key' | 'action' | 'provider' | 'subscriptionId' | 'kind' | 'at'> & Partial<BillingEvent>

/** A billing event with null for every field that is not given. */
export const billingEventFrom = (told: Told): BillingEvent => ({
  quantity: null,
  invoiceId: null,
  amount: null,
  periodStart: null,
  periodEnd: null,
  ...told,
})

/** A row of a provider's list. Its key is the same as long as its content is. */
export const listed = (userRef: string | null, told: Omit<Told, 'key'>): ListedSubscription => {
  const { key: _, ...content } = billingEventFrom({ ...told, key: '' })
  const sorted = Object.entries(content).sort(([one], [other]) => (one < other ? -1 : 1))
  return { userRef, event: { ...content, key: `reconciled:${sha256(JSON.stringify(sorted))}` } }
}

export const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex')
