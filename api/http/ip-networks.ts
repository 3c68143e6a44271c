/** Which IP addresses count as one client, for rate limits and for fair queueing. */
import { isIPv6 } from 'node:net'

/** The IPv4 address, or the /64 of an IPv6 address: one subscriber usually has a whole /64. */
export const clientNetwork = (ip: string): string => (isIPv6(ip) ? `${firstGroups(ip, 4)}::/64` : ip)

/**
 * The smallest prefix that is commonly announced and assigned by itself: IPv4 /24, IPv6 /48. Hundreds of single
 * addresses, or thousands of /64s, cost their holder nothing.
 */
export const routedPrefix = (ip: string): string =>
  isIPv6(ip) ? `${firstGroups(ip, 3)}::/48` : (/^\d+\.\d+\.\d+(?=\.\d+$)/.exec(ip)?.[0] ?? ip)

function firstGroups(ip: string, count: number): string {
  const [head = '', tail = ''] = ip.split('%')[0]?.split('::') ?? []
  const left = head === '' ? [] : head.split(':')
  const right = tail === '' ? [] : tail.split(':')
  const zeros = Array<string>(Math.max(0, 8 - left.length - right.length)).fill('0')
  const groups = ip.includes('::') ? [...left, ...zeros, ...right] : left
  return groups
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}
