/**
 * Which notification the stream events of a session cause, and when. A state is notified once it has held for the delay
 * that the account has chosen, so that a short gap causes no message. Pure, with the time as an argument.
 */
import type { Millis } from '../millis.ts'
import { endMillis, type StreamEventKind } from '../relay/stream-events.ts'

export const streamNoticeKinds = ['stream_lost', 'stream_recovered', 'stream_weak'] as const
export type StreamNoticeKind = (typeof streamNoticeKinds)[number]

/** For how long a stream has to be lost or weak before its account is notified. */
export const streamDelaySeconds = { min: 0, max: 600, default: 30 }

export interface NoticedEvent {
  /** Counts in the session, from 1 on. */
  readonly number: number
  readonly kind: StreamEventKind
  readonly at: Millis
  readonly bitrateKbps: number
}

/** What is known of a session beside its events. */
export interface StreamNoticeMemory {
  /** No event up to this number is notified any more. */
  readonly seenNumber: number
  /** When the loss began that was notified and has not ended. Null for none. */
  readonly lostAt: Millis | null
}

export interface StreamNotice {
  readonly kind: StreamNoticeKind
  readonly event: NoticedEvent
  /** When the loss began that a recovery ends. Null for the other kinds. */
  readonly lostAt: Millis | null
}

export interface JudgedNotice {
  readonly notice: StreamNotice | undefined
  /** As it is unless the notice is sent: {@link rememberSent}. */
  readonly memory: StreamNoticeMemory
  /** When the present state will have held for the delay. Undefined when it causes no notification. */
  readonly pendingUntil: Millis | undefined
}

interface Situation {
  /** The events after `seenNumber`, in the order of their numbers. */
  readonly events: readonly NoticedEvent[]
  /** Whether the session has ended, or its user has asked for that. */
  readonly isEnding: boolean
  readonly delayMillis: Millis
  readonly now: Millis
}

/** Only the present state is notified: what was over before it was noticed is no news. */
export function judgeNotice(
  memory: StreamNoticeMemory,
  { events, isEnding, delayMillis, now }: Situation,
): JudgedNotice {
  const last = events.at(-1)
  const seenNumber = last?.number ?? memory.seenNumber
  const nothing = (lostAt: Millis | null) => ({
    notice: undefined,
    memory: { seenNumber, lostAt },
    pendingUntil: undefined,
  })
  if (isEnding) return nothing(null)
  const event = findPresent(events)
  if (!event) return nothing(last ? null : memory.lostAt)
  const lostAt = isLossOver(events.slice(0, -1)) ? null : memory.lostAt
  if (event.kind === 'stream_recovered') {
    const notice = lostAt === null ? undefined : { kind: event.kind, event, lostAt }
    return { ...nothing(null), notice }
  }
  const dueAt = event.at + delayMillis
  if (now >= dueAt) return { ...nothing(lostAt), notice: { kind: event.kind, event, lostAt: null } }
  return { notice: undefined, memory: { seenNumber: event.number - 1, lostAt }, pendingUntil: dueAt }
}

/**
 * A loss whose stream has ended meanwhile is over: nothing recovers from it.
 * @param memory that of the judgement whose notice was sent.
 */
export const rememberSent = (memory: StreamNoticeMemory, { kind, event }: StreamNotice): StreamNoticeMemory =>
  kind === 'stream_lost' && event.number === memory.seenNumber ? { ...memory, lostAt: event.at } : memory

type PresentEvent = NoticedEvent & { readonly kind: StreamNoticeKind }

/** The event that began the present state, where that can be notified. */
function findPresent(events: readonly NoticedEvent[]): PresentEvent | undefined {
  const last = events.at(-1)
  const former = events.at(-2)
  // A loss does not end its own stream: after minutes without data nothing has changed for the viewers.
  const isEndOfLoss =
    last?.kind === 'stream_ended' && former?.kind === 'stream_lost' && last.at - former.at >= endMillis
  const present = isEndOfLoss ? former : last
  return present && isNoticed(present) ? present : undefined
}

const isNoticed = (event: NoticedEvent): event is PresentEvent => streamNoticeKinds.some((kind) => kind === event.kind)

const isLossOver = (events: readonly NoticedEvent[]): boolean =>
  events.some(({ kind }) => kind !== 'stream_lost' && kind !== 'stream_weak')
