/**
 * The activities of the subscription workflow: read the inbox, write the entitlement, deliver disconnect commands to
 * relays.
 */
import { type InboxEvent, listInboxEvents } from '../../db/billing/events.ts'
import { findUnresolvedPayments, type UnresolvedPayment } from '../../db/billing/resolution.ts'
import { entitlementVersion } from '../../db/billing/subscriptions.ts'
import type { Database } from '../../db/connection.ts'
import { markCommandDelivered } from '../../db/relay/commands.ts'
import { listLiveSessions } from '../../db/relay/sessions.ts'
import { type WriteOutcome, type WriteRequest, writeEntitlement } from '../../db/transactions/write-entitlement.ts'
import type { BillingEvent } from '../../domain/billing/event.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { RelaySessionWorkflows } from '../../workflows/relay-session-client.ts'
import { createNotify } from '../notifications/notifier.ts'

export interface InboxPage {
  /** The account's version when the page was read. An entitlement is only written for this version. */
  readonly version: number
  readonly events: readonly BillingEvent[]
  /** The ids of the events on this page that are not applied yet, and of the unresolved payments. */
  readonly unappliedEventIds: readonly string[]
  /** Payments that only their provider can match to a subscription. On the first page. */
  readonly unresolved: readonly UnresolvedPayment[]
  /** The `afterSeq` of the next page; null after the last one. */
  readonly nextSeq: number | null
  /** As configured now. The workflow cannot keep it, because it runs for years. */
  readonly paymentGraceSeconds: number
}

export interface SubscriptionActivities {
  /** One page of all billing events of the account; null when the account was deleted. */
  readInbox(request: { userId: string; afterSeq: number }): Promise<InboxPage | null>
  /** One idempotent transaction. */
  writeEntitlement(request: Omit<WriteRequest, 'addonNoticeSeconds' | 'trialSeconds'>): Promise<WriteOutcome>
  /** Delivers stored disconnect commands to the account's relays. A job delivers what fails here some seconds later. */
  endRelays(request: { userId: string }): Promise<void>
}

interface Deps {
  readonly config: Config
  readonly sql: Database
  readonly sealing: Sealing
  readonly relaySessions: RelaySessionWorkflows
}

/** The limits of one page, far below Temporal's limits on the size of an activity's result and of one gRPC message. */
const pageEventsMax = 1000
const pageBytesMax = 512 * 1024

export function createSubscriptionActivities({ config, sql, sealing, relaySessions }: Deps): SubscriptionActivities {
  const { paymentGraceSeconds, addonNoticeSeconds } = config.billing
  const { trialSeconds } = config.timeBank
  const notify = createNotify({ sealing, siteUrl: config.siteUrl })
  return {
    readInbox: async ({ userId, afterSeq }) => {
      // Read before the events, so that an event which is accepted in between makes the write outdated.
      const version = await entitlementVersion(sql, userId)
      if (version === undefined) return null
      const events = await listInboxEvents(sql, userId, afterSeq, pageEventsMax)
      const unresolved = afterSeq === 0 ? await findUnresolvedPayments(sql, userId) : []
      const page = takeBytes(events, pageBytesMax)
      return {
        version,
        events: page.map(({ event }) => event),
        unappliedEventIds: [...page.filter(({ isApplied }) => !isApplied), ...unresolved].map(({ id }) => id),
        unresolved,
        nextSeq: events.length < pageEventsMax && page.length === events.length ? null : (page.at(-1)?.seq ?? null),
        paymentGraceSeconds,
      }
    },

    writeEntitlement: (request) => writeEntitlement(sql, { ...request, addonNoticeSeconds, trialSeconds }, notify),

    endRelays: async ({ userId }) => {
      const undelivered = (await listLiveSessions(sql, userId)).filter(
        (session) => session.command === 'disconnect' && session.commandDeliveredSeq < session.commandSeq,
      )
      await Promise.all(
        undelivered.map(async (session) => {
          // Without a running workflow the command stays undelivered, and the job finds out why.
          if (await relaySessions.deliver(session)) await markCommandDelivered(sql, session.id, session.commandSeq)
        }),
      )
    },
  }
}

/** The first events up to a total size; at least one. */
function takeBytes(events: readonly InboxEvent[], bytesMax: number): readonly InboxEvent[] {
  let bytes = 0
  const firstBeyond = events.findIndex(({ event }) => {
    bytes += Buffer.byteLength(JSON.stringify(event))
    return bytes > bytesMax
  })
  return firstBeyond < 0 ? events : events.slice(0, Math.max(1, firstBeyond))
}
