/**
 * Times of MPEG-TS: PTS and DTS count 90 kHz ticks in 33 bits, and start again at 0 after 26.5 hours. Inside the relay
 * they go on growing.
 */
import { wrapTicks } from './packet.ts'

export const ticksPerMilli = 90
export const ticksPerSecond = 90_000

/** As it stands in a packet. */
export function wrapTime(ticks: number): number {
  const rest = Math.round(ticks) % wrapTicks
  return rest < 0 ? rest + wrapTicks : rest
}

/** The time nearest to another one that stands for the same ticks in a packet. */
export function unwrapTime(ticks: number, near: number): number {
  const distance = wrapTime(ticks - wrapTime(near))
  return Math.round(near) + (distance >= wrapTicks / 2 ? distance - wrapTicks : distance)
}

/** In units of 27 MHz, as it stands in a packet. */
export const wrapClock = (ticks: number): number => {
  const clock = Math.round(ticks * 300) % (wrapTicks * 300)
  return clock < 0 ? clock + wrapTicks * 300 : clock
}

/** How much of the difference between the expected and the real arrival of a unit the clock takes over. */
const followShare = 0.05

/**
 * The time of the stream, as the players should receive it: the DTS of the picture that arrives now. It follows the
 * stream while one arrives, and the time of day when none does.
 */
export class MediaClock {
  #ticks: number | undefined
  #at = 0

  get isSet(): boolean {
    return this.#ticks !== undefined
  }

  /** @param now milliseconds. */
  at(now: number): number {
    return (this.#ticks ?? 0) + (now - this.#at) * ticksPerMilli
  }

  set(ticks: number, now: number): void {
    this.#ticks = ticks
    this.#at = now
  }

  /** A unit with this time has arrived. */
  follow(ticks: number, now: number): void {
    const expected = this.at(now)
    this.set(expected + (ticks - expected) * followShare, now)
  }
}
