/** What a subscription's actor does to the world: reads its inbox, writes the entitlement, tells relays that they end. */
import { type InboxEvent, listInboxEvents } from '../db/billing-events.ts'
import { findUnresolvedPayments, type UnresolvedPayment } from '../db/billing-resolution.ts'
import type { Database } from '../db/connection.ts'
import { liveRelaySessions, markCommandDelivered } from '../db/relay-sessions.ts'
import { entitlementVersion, type WriteOutcome, type WriteRequest, writeEntitlement } from '../db/subscriptions.ts'
import type { BillingEvent } from '../domain/billing-event.ts'
import type { Config } from '../platform/config/config.ts'
import type { RelaySessionActors } from '../workflows/relay-session-client.ts'

export interface InboxPage {
  /** Of the account when the page was read; a judgement is written for this version and no other. */
  readonly version: number
  readonly facts: readonly BillingEvent[]
  /** Events among them that are not applied yet, and unresolved payments, by their ids. */
  readonly taken: readonly string[]
  /** Payments whose provider has still to be asked; on the first page. Absent in histories of earlier releases. */
  readonly unresolved?: readonly UnresolvedPayment[]
  /** Where the next page begins; null after the last. */
  readonly nextSeq: number | null
  /** As configured now: an actor lives for years. */
  readonly paymentGraceSeconds: number
}

export interface SubscriptionActivities {
  /** Everything that was ever told of the account, one page; null when the account is gone. */
  readInbox(request: { userId: string; afterSeq: number }): Promise<InboxPage | null>
  /** One transaction; repeating it changes nothing more. */
  writeEntitlement(request: Omit<WriteRequest, 'addonNoticeSeconds'>): Promise<WriteOutcome>
  /** Hands relays that were ordered off their orders at once; a job would do it some seconds later. */
  endRelays(request: { userId: string }): Promise<void>
}

interface Needs {
  readonly config: Config
  readonly sql: Database
  readonly actors: RelaySessionActors
}

/** Events of one page, by number and by size: far below what Temporal lets one activity answer, and one call carry. */
const pageMax = 1000
const pageBytesMax = 512 * 1024

export function createSubscriptionActivities({ config, sql, actors }: Needs): SubscriptionActivities {
  const { paymentGraceSeconds, addonNoticeSeconds } = config.billing
  return {
    readInbox: async ({ userId, afterSeq }) => {
      // Before the events: what comes between the two makes the write look again, and never the other way round.
      const version = await entitlementVersion(sql, userId)
      if (version === undefined) return null
      const found = await listInboxEvents(sql, userId, afterSeq, pageMax)
      const unresolved = afterSeq === 0 ? await findUnresolvedPayments(sql, userId) : []
      const page = withinBytes(found, pageBytesMax)
      return {
        version,
        facts: page.map((one) => one.event),
        taken: [...page.filter((one) => !one.isTaken), ...unresolved].map((one) => one.id),
        unresolved,
        nextSeq: found.length < pageMax && page.length === found.length ? null : (page.at(-1)?.seq ?? null),
        paymentGraceSeconds,
      }
    },

    writeEntitlement: (request) => writeEntitlement(sql, { ...request, addonNoticeSeconds }),

    endRelays: async ({ userId }) => {
      const ordered = (await liveRelaySessions(sql, userId)).filter(
        (session) => session.command === 'disconnect' && session.commandDeliveredSeq < session.commandSeq,
      )
      await Promise.all(
        ordered.map(async (session) => {
          // Where no actor is left to be told, the job looks closer at why.
          if (await actors.deliver(session)) await markCommandDelivered(sql, session.id, session.commandSeq)
        }),
      )
    },
  }
}

/** As many of them, from the first one on, as have room; one at least. */
function withinBytes(events: readonly InboxEvent[], bytesMax: number): readonly InboxEvent[] {
  let bytes = 0
  const full = events.findIndex(({ event }) => {
    bytes += Buffer.byteLength(JSON.stringify(event))
    return bytes > bytesMax
  })
  return full < 0 ? events : events.slice(0, Math.max(1, full))
}
