/** Whether two IP addresses belong to the same network, as far as addresses show it. */
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Private, loopback and link-local ranges: different networks use the same addresses. */
const sharedRanges = new BlockList()
for (const [address, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
] as const)
  sharedRanges.addSubnet(address, bits, 'ipv4')
for (const [address, bits] of [
  ['::', 127],
  ['fc00::', 7],
  ['fe80::', 10],
] as const)
  sharedRanges.addSubnet(address, bits, 'ipv6')

export type NetworkMatch = 'same' | 'other' | 'unknown'

/** Compares IPv4 addresses as a whole and IPv6 addresses by their /64. */
export function compareNetworks(theirs: string, ours: string): NetworkMatch {
  if (isIP(theirs) === 0 || isIP(ours) === 0 || isSharedAddress(theirs)) return 'unknown'
  if (theirs === ours) return 'same'
  if (!isIPv6(theirs) || !isIPv6(ours)) return 'other'
  const network = new BlockList()
  network.addSubnet(theirs, 64, 'ipv6')
  return network.check(ours, 'ipv6') ? 'same' : 'other'
}

const isSharedAddress = (ip: string): boolean => sharedRanges.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4')
