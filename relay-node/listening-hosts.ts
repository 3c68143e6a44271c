/** The addresses that a relay binds. */
import { findBindError } from '../platform/bindable-host.ts'
import { unmapAddress } from './addresses.ts'
import type { Log } from './log.ts'

/** The address that stands for all of its family. */
export const wildcards = { IPv4: '0.0.0.0', IPv6: '::' } as const

export const isWildcard = (host: string): boolean => host === wildcards.IPv4 || host === wildcards.IPv6

/**
 * One address of each family where `host` stands for all addresses, otherwise the host alone. On a machine without IPv6
 * that is IPv4 alone, which is logged.
 * @param findIpv6Problem resolves with the code of an error on a machine without IPv6.
 */
export async function chooseListeningHosts(
  host: string,
  log: Log,
  findIpv6Problem: () => Promise<string | null> = () => findBindError('::1'),
): Promise<string[]> {
  if (!isWildcard(host)) return [unmapAddress(host)]
  const problem = await findIpv6Problem()
  if (problem === null) return [wildcards.IPv4, wildcards.IPv6]
  log('info', 'this machine has no IPv6: the relay can be reached over IPv4 only', { reason: problem })
  return [wildcards.IPv4]
}
