/** What the IP address of a remote says: its family, its subscriber and its network. */

import { isIPv4, isIPv6 } from 'node:net'

/** An IPv4 address that is mapped into IPv6, for example `::ffff:198.51.100.7`, as IPv4; any other one as it is. */
export const unmapAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** The IPv4 address, or the first 64 bits of an IPv6 address: one subscriber usually has a whole /64. */
export const subscriberOf = (address: string): string => groupAddress(address, 4, /^.*$/)

/** The network that usually has one owner: the first 24 bits of an IPv4 address, the first 48 of an IPv6 address. */
export const networkOf = (address: string): string => groupAddress(address, 3, /^\d+\.\d+\.\d+/)

/**
 * The address and port of a remote, whose host is cut to what many share: its first 16 bits, or 32 of an IPv6 address.
 * @param addr `198.51.100.7:5000` or `[2001:db8::7]:5000`; another text is returned without what is before its port.
 */
export function maskAddress(addr: string): string {
  const [, host = '', port = '0'] = /^\[?(.*?)\]?:(\d+)$/.exec(addr) ?? []
  const plain = unmapAddress(host)
  if (isIPv4(plain)) return `${plain.split('.', 2).join('.')}.0.0:${port}`
  if (!isIPv6(plain)) return `0.0.0.0:${port}`
  const shown = groupAddress(plain, 2, /^$/)
    .replace(/(^|:)0$/, '')
    .replace(/^0$/, '')
  return `[${shown}::]:${port}`
}

/** @param groups of 16 bits, for an IPv6 address. */
function groupAddress(address: string, groups: number, ipv4: RegExp): string {
  const plain = unmapAddress(address)
  if (!plain.includes(':')) return ipv4.exec(plain)?.[0] ?? plain
  const [head = '', tail] = plain.split('::')
  const [left = [], right = []] = [head, tail ?? ''].map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array<string>(zeros).fill('0'), ...right].slice(0, groups).join(':')
}
