/**
 * Which sources of datagrams can be callers. The others are forged: an answer would reach many machines, the relay
 * itself, or none.
 */
import { networkInterfaces } from 'node:os'
import { isWildcard } from './listening-hosts.ts'
import type { Remote } from './peer.ts'

/** "This network" (RFC 1122), multicast and broadcast; and unspecified and multicast of IPv6. */
const impossibleAddress = /^(0|22[4-9]|23\d)\.|^255\.255\.255\.255$|^::$|^ff[0-9a-f]{2}:/i

export interface OwnAddress {
  /** The addresses that the ports are bound to, or those for all. */
  readonly hosts: readonly string[]
  readonly ports: readonly number[]
}

/** A test for the sources of the datagrams that a relay receives on its ports. */
export function createPeerCheck({ hosts, ports }: OwnAddress): (source: Remote) => boolean {
  const ownPorts = new Set(ports)
  const interfaces = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
  const ownAddresses = new Set(hosts.some(isWildcard) ? interfaces : hosts)
  const isOwn = ({ address, port }: Remote) => ownPorts.has(port) && ownAddresses.has(address.replace(/%.*$/, ''))
  // No answer to port 0 is possible, and a socket refuses to send one with an exception.
  return (source) => source.port !== 0 && !impossibleAddress.test(source.address) && !isOwn(source)
}
