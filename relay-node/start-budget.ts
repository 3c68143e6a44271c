/**
 * Bounds how often connections are opened at the engine, since each may start a process. A caller above the budget gets
 * no answer and repeats its handshake after 250 ms, for 3 s, so it is admitted when the budget allows.
 */
import { subscriberOf } from './addresses.ts'
import type { Role } from './stream-access.ts'

const windowMillis = 2_000

/** In one window. All players may connect again together, also from behind one address. */
const subscriberMax = { publish: 4, play: 8 } as const
const totalMax = { publish: 8, play: 16 } as const

export class StartBudget {
  #starts: { readonly role: Role; readonly subscriber: string; readonly at: number }[] = []

  /** @returns whether the subscriber of an IP address may open a connection now, which then counts. */
  take(role: Role, host: string, now: number): boolean {
    this.#starts = this.#starts.filter(({ at }) => now - at < windowMillis)
    const ofRole = this.#starts.filter((start) => start.role === role)
    if (ofRole.length >= totalMax[role]) return false
    const subscriber = subscriberOf(host)
    if (ofRole.filter((start) => start.subscriber === subscriber).length >= subscriberMax[role]) return false
    this.#starts.push({ role, subscriber, at: now })
    return true
  }
}
