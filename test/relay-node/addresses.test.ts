/** Which addresses count as one subscriber, and as one network. */
import { describe, expect, test } from 'vitest'
import { maskAddress, networkOf, subscriberOf, unmapAddress } from '../../relay-node/addresses.ts'

test.each([
  ['::ffff:203.0.113.9', '203.0.113.9'],
  ['::FFFF:203.0.113.9', '203.0.113.9'],
  ['203.0.113.9', '203.0.113.9'],
  ['2001:db8::9', '2001:db8::9'],
  ['::1', '::1'],
])('%s is shown as %s', (address, shown) => expect(unmapAddress(address)).toBe(shown))

describe('the subscriber of an address', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['2001:db8:7:1::9', '2001:db8:7:1'],
    ['2001:db8:7:1:a:b:c:d', '2001:db8:7:1'],
    ['2001:db8::9', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('%s is %s', (address, subscriber) => expect(subscriberOf(address)).toBe(subscriber))
})

describe('what a masked address and port shows', () => {
  test.each([
    ['203.0.113.9:46859', '203.0.0.0:46859'],
    ['[::ffff:203.0.113.9]:46859', '203.0.0.0:46859'],
    ['[2001:db8:7:1::9]:46859', '[2001:db8::]:46859'],
    ['[2001::9]:46859', '[2001::]:46859'],
    ['[::1]:46859', '[::]:46859'],
    ['no address', '0.0.0.0:0'],
  ])('of %s is %s', (addr, shown) => expect(maskAddress(addr)).toBe(shown))
})

describe('the network of an address', () => {
  test.each([
    ['203.0.113.9', '203.0.113'],
    ['::ffff:203.0.113.9', '203.0.113'],
    ['2001:db8:7:1::9', '2001:db8:7'],
    ['2001:db8::9', '2001:db8:0'],
    ['::1', '0:0:0'],
    ['1:2:3:4:5:6:7:8', '1:2:3'],
    ['fe80::1%eth0', 'fe80:0:0'],
  ])('%s is %s', (address, network) => expect(networkOf(address)).toBe(network))
})
