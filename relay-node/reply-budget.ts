/**
 * Limits how many questions are answered to addresses that have proved nothing. Each network has a share of its own, so
 * that a flood with forged addresses of some networks takes no answer from the others, and then there is a total. Both
 * refill steadily and at random times: of a limit per second a flood takes all in the first moments, and a caller that
 * repeats its question in step with that gets no answer, ever.
 */
import { networkOf } from './addresses.ts'
import { RateLimit } from './rate-limit.ts'

export interface BudgetLimits {
  readonly perNetwork: number
  readonly total: number
}

/** Answers per second. A relay serves nine callers, who repeat a question four times a second at most. */
export const defaultBudget: BudgetLimits = { perNetwork: 25, total: 6_000 }
/** All callers of a relay behind one address come back at once after an outage. */
const networkBurst = 16
/** The share of the total that can be taken at once: 10 ms. */
const totalBurstSeconds = 0.01
/** Of each table. Networks that share a place share its limit, so the memory is limited. */
const places = 4_096
const tables = 2

export class ReplyBudget {
  readonly #total: RateLimit
  /**
   * A network has a place in each, and half of its share there, so a flood from others takes all of it only where both
   * are theirs.
   */
  readonly #tables: readonly { readonly seed: number; readonly places: readonly RateLimit[] }[]

  constructor({ perNetwork, total } = defaultBudget, random = Math.random) {
    const tableOf = () => ({
      // Unknown outside, so that no network can be chosen for the place of another one.
      seed: Math.floor(random() * 2 ** 32),
      places: Array.from({ length: places }, () => new RateLimit(perNetwork / tables, networkBurst / tables, random)),
    })
    this.#total = new RateLimit(total, Math.max(1, total * totalBurstSeconds), random)
    this.#tables = Array.from({ length: tables }, tableOf)
  }

  /**
   * Whether a question is answered.
   * @param address an IP address.
   * @param now milliseconds of a clock that never goes back.
   */
  take(address: string, now: number): boolean {
    const network = networkOf(address)
    const hasShare = this.#tables.some((table) => table.places[placeOf(network, table.seed)]?.take(now))
    return hasShare && this.#total.take(now)
  }
}

/** FNV-1a with a seed. */
function placeOf(network: string, seed: number): number {
  let hash = seed
  for (let index = 0; index < network.length; index += 1)
    hash = Math.imul(hash ^ network.charCodeAt(index), 0x0100_0193)
  // The seed moves all places alike without this.
  hash = Math.imul(hash ^ (hash >>> 15) ^ seed, 0x85eb_ca6b)
  return ((hash ^ (hash >>> 13)) >>> 0) % places
}
