/** The addresses that can be callers of a relay. */
import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import type { Remote } from '../../relay-node/peer.ts'
import { createPeerCheck } from '../../relay-node/possible-peers.ts'

const ports = [5000, 4001, 4000]
const source = (address: string, port: number): Remote => ({
  address,
  port,
  family: address.includes(':') ? 'IPv6' : 'IPv4',
})

describe.each([[['203.0.113.5']], [['0.0.0.0']], [['0.0.0.0', '::']]])('at %j', (hosts) => {
  const isPossible = createPeerCheck({ hosts, ports })

  test.each([
    ['0.0.0.0', 1234],
    ['0.1.2.3', 1234],
    ['224.0.0.1', 1234],
    ['239.255.255.250', 1234],
    ['255.255.255.255', 1234],
    ['::', 1234],
    ['ff02::1', 1234],
    ['198.51.100.7', 0],
    ['2001:db8::7', 0],
  ])('%s with port %i cannot be a caller', (address, port) => expect(isPossible(source(address, port))).toBe(false))

  test.each([
    ['198.51.100.7', 1234],
    ['198.51.100.7', 4001],
    ['10.0.0.255', 1234],
    ['100.64.0.1', 1234],
    ['223.255.255.255', 1234],
    ['127.0.0.1', 1234],
    ['::1', 1234],
    ['2001:db8::ff00', 1234],
    ['fe80::1%eth0', 1234],
  ])('%s with port %i can be a caller', (address, port) => expect(isPossible(source(address, port))).toBe(true))
})

test('the own address can be a caller, but not with one of the own ports', () => {
  const isPossible = createPeerCheck({ hosts: ['203.0.113.5'], ports })
  for (const port of ports) expect(isPossible(source('203.0.113.5', port))).toBe(false)
  expect(isPossible(source('203.0.113.5', 4002))).toBe(true)
})

test.each([[['0.0.0.0']], [['0.0.0.0', '::']]])(
  'a relay that is bound to %j knows all addresses of its machine',
  (hosts) => {
    const isPossible = createPeerCheck({ hosts, ports })
    const own = Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address))
    expect(own).toContain('127.0.0.1')
    for (const address of own) {
      expect(isPossible(source(address, 4001))).toBe(false)
      expect(isPossible(source(address, 4002))).toBe(true)
    }
  },
)
