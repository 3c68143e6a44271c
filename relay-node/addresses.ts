/** What the IP address of a remote tells apart: its family, its subscriber and its network. */

/** An IPv4 address that is mapped into IPv6, for example `::ffff:198.51.100.7`, as IPv4; any other one as it is. */
export const unmapAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** The IPv4 address, or the first 64 bits of an IPv6 address: one subscriber usually has a whole /64. */
export const subscriberOf = (address: string): string => groupAddress(address, 4, /^.*$/)

/** The network that usually has one owner: the first 24 bits of an IPv4 address, the first 48 of an IPv6 address. */
export const networkOf = (address: string): string => groupAddress(address, 3, /^\d+\.\d+\.\d+/)

/** @param groups of 16 bits, for an IPv6 address. */
function groupAddress(address: string, groups: number, ipv4: RegExp): string {
  const plain = unmapAddress(address)
  if (!plain.includes(':')) return ipv4.exec(plain)?.[0] ?? plain
  const [head = '', tail] = plain.split('::')
  const [left = [], right = []] = [head, tail ?? ''].map((part) => part.split(':').filter((group) => group !== ''))
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length)
  return [...left, ...Array<string>(zeros).fill('0'), ...right].slice(0, groups).join(':')
}
