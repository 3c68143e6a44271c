/**
 * Refuses callers after a pause, since libsrt tries again at once when it is refused. The number of pending refusals is
 * limited.
 */
import { subscriberOf } from './addresses.ts'
import type { Peer } from './peer.ts'
import { buildRejection, type Rejection } from './srt-packets.ts'

const pendingMax = 256
const pendingPerSubscriberMax = 4

interface Pending {
  readonly subscriber: string
  readonly timer: NodeJS.Timeout
}

export class Refusals {
  readonly #pending = new Map<string, Pending>()
  readonly #millis: number

  /** @param millis the pause. */
  constructor(millis: number) {
    this.#millis = millis
  }

  /**
   * A caller that repeats its handshake meanwhile, and one above the limits, gets no other reply.
   * @param onSent called when the caller has got its refusal.
   */
  refuse(peer: Peer, conclusion: Buffer, rejection: Rejection, onSent: () => void): void {
    if (this.#pending.has(peer.key) || this.#pending.size >= pendingMax) return
    const subscriber = subscriberOf(peer.host)
    const ofSubscriber = [...this.#pending.values()].filter((refusal) => refusal.subscriber === subscriber)
    if (ofSubscriber.length >= pendingPerSubscriberMax) return
    const timer = setTimeout(() => {
      this.#pending.delete(peer.key)
      peer.send(buildRejection(conclusion, rejection))
      onSent()
    }, this.#millis)
    this.#pending.set(peer.key, { subscriber, timer })
  }

  /** Takes the pending refusal back, of a caller whose repeated handshake is admitted. */
  withdraw({ key }: Peer): void {
    clearTimeout(this.#pending.get(key)?.timer)
    this.#pending.delete(key)
  }

  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }
}
