/** Whether a client runs on this machine. */
import { BlockList, isIPv6 } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

/** @param ip also an IPv4 address in the form of IPv6. */
export const isLoopback = (ip: string): boolean => {
  const address = ip.replace(/^::ffff:(?=\d+\.)/i, '')
  return loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
