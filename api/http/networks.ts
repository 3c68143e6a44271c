/** Groups client addresses for rate limits and fair queueing. */
import { isIPv6 } from 'node:net'

/** The key of an address in rate limits: the IPv4 address or the IPv6 /64, since one client owns a whole /64. */
export const addressSubject = (ip: string): string => (isIPv6(ip) ? `${firstGroups(ip, 4)}::/64` : ip)

/**
 * The smallest separately routed network of an address, commonly owned by one party: IPv4 /24 or IPv6 /48. One party can have
 * thousands of single addresses or /64s.
 */
export const routedBlock = (ip: string): string =>
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
