/** Whether two addresses are one network's, as far as addresses can tell. */
import { BlockList, isIP, isIPv6 } from 'node:net'

/**
 * Those that everybody has at home, or behind the proxy that we stand behind. They tell nothing: of two strangers both may
 * have the same one.
 */
const shared = new BlockList()
for (const [address, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  shared.addSubnet(address, bits, 'ipv4')
for (const [address, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  shared.addSubnet(address, bits, 'ipv6')

export type NetworkMatch = 'same' | 'other' | 'unknown'

/** A network owns one IPv4 address, or a whole /64 of IPv6. */
export function compareNetworks(theirs: string, ours: string): NetworkMatch {
  if (isIP(theirs) === 0 || isIP(ours) === 0 || tellsNothing(theirs)) return 'unknown'
  if (theirs === ours) return 'same'
  if (!isIPv6(theirs) || !isIPv6(ours)) return 'other'
  const network = new BlockList()
  network.addSubnet(theirs, 64, 'ipv6')
  return network.check(ours, 'ipv6') ? 'same' : 'other'
}

const tellsNothing = (ip: string): boolean => shared.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4')
