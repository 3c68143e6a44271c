/** Messages to users through the outbox: what a delivery of each channel implements. */

export const messageChannels = ['email', 'webhook', 'discord'] as const
export type MessageChannel = (typeof messageChannels)[number]

export interface OutgoingMessage {
  /** Stable over all attempts. */
  readonly id: string
  readonly kind: string
  /** What was enqueued, as JSON. */
  readonly content: unknown
}

/**
 * Makes one attempt. Rejects to be retried, and with `UndeliverableError` to be given up.
 * @param signal aborted when the attempt takes too long. Nothing may be sent afterwards, since another attempt follows.
 */
export type Deliver = (message: OutgoingMessage, signal: AbortSignal) => Promise<void>

/** The message can never be delivered. The error's text is stored, so it contains no secret. */
export class UndeliverableError extends Error {
  override name = 'UndeliverableError'
}

/** The recipient asks to wait. The message is attempted again no earlier than after this time. */
export class RetryLaterError extends Error {
  override name = 'RetryLaterError'

  constructor(
    message: string,
    readonly afterSeconds: number,
  ) {
    super(message)
  }
}
