/**
 * Look-ups of host names that users choose, with sockets of their own. `dns.lookup` runs in the few threads of libuv,
 * where six names whose servers never answer would stop every other look-up, file and hash of the process for half a
 * minute.
 */
import { Resolver } from 'node:dns/promises'

export interface ResolvedAddress {
  readonly address: string
  readonly family: number
}

export interface HostLookupLimits {
  /** The time from the question to its end, in which it may wait for the one before it. */
  readonly millisMax: number
  /** Look-ups of all accounts together. */
  readonly concurrencyMax: number
}

const defaultLimits: HostLookupLimits = { millisMax: 3000, concurrencyMax: 32 }

/** Why a look-up was not made, or ended. */
class HostLookupError extends Error {
  override name = 'HostLookupError'
  constructor(readonly code: 'EBUSY' | 'ETIMEOUT') {
    super(`the name was not resolved: ${code}`)
  }
}

/** All addresses of a host name. Rejects when it has none. The names of one owner are resolved one after the other. */
export type LookUpHost = (host: string, owner: string) => Promise<readonly ResolvedAddress[]>

/**
 * Asks the name servers of the machine, and reads neither `/etc/hosts` nor its search domains.
 * @param servers to ask instead, as `address:port`.
 */
export function createHostLookup(limits = defaultLimits, servers?: readonly string[]): LookUpHost {
  const lastOf = new Map<string, Promise<unknown>>()
  let running = 0

  const lookUp = async (host: string, deadline: number) => {
    const millis = deadline - performance.now()
    if (millis <= 0) throw new HostLookupError('ETIMEOUT')
    if (running >= limits.concurrencyMax) throw new HostLookupError('EBUSY')
    running += 1
    // One for each look-up, since `cancel` ends all questions of a resolver.
    const resolver = new Resolver({ timeout: 1000, tries: 3 })
    if (servers) resolver.setServers(servers)
    const timer = setTimeout(() => resolver.cancel(), millis)
    try {
      return await resolveBoth(resolver, host)
    } finally {
      clearTimeout(timer)
      running -= 1
    }
  }

  return async (host, owner) => {
    const deadline = performance.now() + limits.millisMax
    const before = lastOf.get(owner)
    const answer = (before ?? Promise.resolve()).catch(() => {}).then(() => lookUp(host, deadline))
    lastOf.set(owner, answer)
    try {
      return await answer
    } finally {
      if (lastOf.get(owner) === answer) lastOf.delete(owner)
    }
  }
}

async function resolveBoth(resolver: Resolver, host: string): Promise<ResolvedAddress[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
  const addresses = [
    ...(four.status === 'fulfilled' ? four.value.map((address) => ({ address, family: 4 })) : []),
    ...(six.status === 'fulfilled' ? six.value.map((address) => ({ address, family: 6 })) : []),
  ]
  if (addresses.length === 0 && four.status === 'rejected') throw four.reason
  return addresses
}

/** The one of this process. */
export const lookUpHost = createHostLookup()
