/** Refuses callers after a pause, since libsrt tries again at once when it is refused. The number of pending refusals is limited. */
import type { Log } from './log.ts'
import type { Peer } from './peer.ts'
import { buildRejection, type Rejection } from './srt-packets.ts'

const pendingMax = 256
const pendingPerHostMax = 4
const logMillis = 10_000

interface Pending {
  readonly host: string
  readonly timer: NodeJS.Timeout
}

export class Refusals {
  readonly #pending = new Map<string, Pending>()
  readonly #millis: number
  readonly #log: Log
  #loggedAt = Number.NEGATIVE_INFINITY
  #unlogged = 0

  constructor({ millis, log }: { readonly millis: number; readonly log: Log }) {
    this.#millis = millis
    this.#log = log
  }

  /** A caller that repeats its handshake meanwhile, and one above the limits, gets no other reply. */
  refuse(peer: Peer, conclusion: Buffer, rejection: Rejection): void {
    if (this.#pending.has(peer.key) || this.#pending.size >= pendingMax) return
    const { host } = peer
    const ofHost = [...this.#pending.values()].filter((one) => one.host === host)
    if (ofHost.length >= pendingPerHostMax) return
    this.#count(rejection)
    const timer = setTimeout(() => {
      this.#pending.delete(peer.key)
      peer.send(buildRejection(conclusion, rejection))
    }, this.#millis)
    this.#pending.set(peer.key, { host, timer })
  }

  close(): void {
    for (const { timer } of this.#pending.values()) clearTimeout(timer)
    this.#pending.clear()
  }

  #count(rejection: Rejection): void {
    this.#unlogged += 1
    const now = performance.now()
    if (now - this.#loggedAt < logMillis) return
    this.#log('warn', 'callers were refused', { latest: rejection, callers: this.#unlogged })
    this.#loggedAt = now
    this.#unlogged = 0
  }
}
