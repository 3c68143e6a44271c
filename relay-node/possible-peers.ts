/**
 * Which sources of datagrams can be callers. The others are forged: an answer would reach many machines, the relay
 * itself, or none.
 */
import { networkInterfaces } from 'node:os'
import type { Remote } from './peer.ts'

/** "This network" (RFC 1122), multicast and broadcast; and unspecified and multicast of IPv6. */
const impossibleAddress = /^(::ffff:)?(0|22[4-9]|23\d)\.|^(::ffff:)?255\.255\.255\.255$|^::$|^ff[0-9a-f]{2}:/i

/** A port that opens for IPv6, too, gets addresses of IPv4 in this form. */
const mappedPrefix = /^::ffff:(?=\d+\.)/i
const allAddresses = /^(0\.0\.0\.0|::)$/

export interface OwnAddress {
  /** The address that the ports are bound to, or the one for all. */
  readonly host: string
  readonly ports: readonly number[]
}

/** A test for the sources of the datagrams that a relay receives on its ports. */
export function createPeerCheck({ host, ports }: OwnAddress): (source: Remote) => boolean {
  const ownPorts = new Set(ports)
  const interfaces = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
  const ownAddresses = new Set(allAddresses.test(host) ? interfaces : [host])
  const isOwn = ({ address, port }: Remote) =>
    ownPorts.has(port) && ownAddresses.has(address.replace(mappedPrefix, '').replace(/%.*$/, ''))
  // No answer to port 0 is possible, and a socket refuses to send one with an exception.
  return (source) => source.port !== 0 && !impossibleAddress.test(source.address) && !isOwn(source)
}
