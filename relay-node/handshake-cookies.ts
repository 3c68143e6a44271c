/**
 * The cookies of the first phase of SRT handshakes. A conclusion with one proves that its caller receives at its
 * address, and that its first phase was answered after the latest connection of the peer was admitted: a cookie also
 * depends on that connection. So what is delayed or repeated of a former socket never replaces the present one, without
 * a state per caller. A time in the cookie would do the same, but take bits of its authentication.
 */
import { createHmac, randomBytes } from 'node:crypto'

const periodMillis = 60_000
/** A cookie is valid in the period in which it was issued and in the next one. */
const validMillisMax = 2 * periodMillis

export interface CookiePeer {
  readonly role: string
  readonly peerKey: string
}

/** What a cookie is bound to, beside the latest connection. */
export interface CookieScope extends CookiePeer {
  readonly socketId: number
}

interface Admission {
  readonly number: number
  /** That of the connection before, 0 for none. */
  readonly previous: number
  /** All cookies that were issued until now, before or after the admission, are invalid then. */
  forgottenAt: number
}

export class HandshakeCookies {
  readonly #key = randomBytes(32)
  /** The latest ones of peers. Their number is limited by that of connections that a relay opens in two minutes. */
  readonly #admissions = new Map<string, Admission>()
  #admitted = 0

  /** @param now milliseconds of a clock that never goes back. */
  issue(scope: CookieScope, now: number): number {
    const admission = this.#admissions.get(peerOf(scope))
    // A handshake that has begun must not become invalid when the admission is forgotten.
    if (admission !== undefined) admission.forgottenAt = now + validMillisMax
    return this.#compute(scope, admission?.number ?? 0, now)
  }

  /**
   * @param isPreviousValid accepts also those issued before the latest connection of the peer and after the one before.
   */
  isValid(scope: CookieScope, cookie: number, now: number, isPreviousValid: boolean): boolean {
    const { number = 0, previous = 0 } = this.#admissions.get(peerOf(scope)) ?? {}
    const admissions = isPreviousValid ? [number, previous] : [number]
    return admissions.some((admission) =>
      [now, now - periodMillis].some((time) => this.#compute(scope, admission, time) === cookie),
    )
  }

  /** A connection of the peer is admitted: cookies that were issued before are no longer valid. */
  admit(peer: CookiePeer, now: number): void {
    const previous = this.#admissions.get(peerOf(peer))?.number ?? 0
    this.#admitted += 1
    this.#admissions.set(peerOf(peer), { number: this.#admitted, previous, forgottenAt: now + validMillisMax })
  }

  /** Forgets what no valid cookie depends on. */
  sweep(now: number): void {
    for (const [peer, { forgottenAt }] of this.#admissions) if (forgottenAt < now) this.#admissions.delete(peer)
  }

  #compute(scope: CookieScope, admission: number, now: number): number {
    const text = `${Math.floor(now / periodMillis)} ${admission} ${scope.socketId} ${peerOf(scope)}`
    // A request has the cookie 0.
    return createHmac('sha256', this.#key).update(text).digest().readUInt32BE(0) || 1
  }
}

const peerOf = ({ role, peerKey }: CookiePeer): string => `${role} ${peerKey}`
