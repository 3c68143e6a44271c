/** Which addresses count as one, for limits and for fairness. */
import { isIPv6 } from 'node:net'

/** What an address is counted by: an IPv6 caller owns its whole /64, so that is one subject. */
export const addressSubject = (ip: string): string => (isIPv6(ip) ? `${firstGroups(ip, 4)}::/64` : ip)

/**
 * The smallest block of addresses that is routed by itself, which is what one holder commonly has: IPv4 /24, IPv6 /48. Of
 * single addresses, or /64s, a holder has hundreds or thousands at no cost.
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
