/** The URLs and addresses that endpoints may have. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  findAddressProblem,
  isPublicAddress,
  parseEndpointUrl,
  publicEndpointRules,
} from '../../../providers/webhooks/endpoint-rules.ts'

const isAccepted = (url: string, type: 'webhook' | 'discord' = 'webhook') => 'url' in parseEndpointUrl(type, url)

describe('an address', () => {
  test.each([
    '0.0.0.0',
    '0.1.2.3',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::1',
    '100::1',
    '2001::1',
    '2001:db8::1',
    '2002:7f00:1::1',
    '3fff::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fec0::1',
    'ff02::1',
    '4000::1',
    'localhost',
    '',
  ])('%s is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test.each(['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001:80b::200e'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true)
    },
  )

  test('of a private IPv4 network is refused in each notation that a URL may have', () => {
    const privateAddress = fc.oneof(
      fc.tuple(fc.constant(10), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(127), fc.nat(255), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(169), fc.constant(254), fc.nat(255), fc.nat(255)),
      fc.tuple(fc.constant(192), fc.constant(168), fc.nat(255), fc.nat(255)),
    )
    fc.assert(
      fc.property(privateAddress, (bytes) => {
        const number = bytes.reduce((sum, byte) => sum * 256 + byte, 0)
        const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
        const hosts = [
          bytes.join('.'),
          String(number),
          `0x${hex}`,
          bytes.map((byte) => `0${byte.toString(8)}`).join('.'),
          `[::ffff:${hex.slice(0, 4)}:${hex.slice(4)}]`,
          `[64:ff9b::${hex.slice(0, 4)}:${hex.slice(4)}]`,
        ]
        expect(hosts.filter((host) => isAccepted(`https://${host}/hook`))).toEqual([])
      }),
    )
  })
})

describe('a URL', () => {
  test.each([
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'https://user@example.com/',
    'https://user:password@example.com/',
    'https://example.com:22/',
    'https://example.com:5432/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://2130706433/',
    'https://0x7f.1/',
    'https://127.0.0.1./',
    'https://169.254.169.254/latest/meta-data/',
    'example.com/hook',
    '',
    `https://example.com/${'a'.repeat(2000)}`,
  ])('%s is refused', (url) => {
    expect(isAccepted(url)).toBe(false)
  })

  test.each(['https://example.com', 'https://example.com:443/a?b=c', 'https://example.com:8443/', 'https://1.1.1.1/'])(
    '%s is accepted',
    (url) => {
      expect(isAccepted(url)).toBe(true)
    },
  )

  test.each([
    ['https://discord.com/api/webhooks/1234567890/ab-C_d', true],
    ['https://ptb.discord.com/api/v10/webhooks/1234567890/abcd', true],
    ['https://discordapp.com/api/webhooks/1/a?thread_id=42', true],
    ['https://discord.com/api/webhooks/1/a?wait=true', false],
    ['https://discord.com/api/webhooks/1/a/../../../users/@me', false],
    ['https://discord.com/api/users/@me', false],
    ['https://discord.com:8443/api/webhooks/1/a', false],
    ['https://discord.com.example.com/api/webhooks/1/a', false],
    ['https://example.com/api/webhooks/1/a', false],
    ['https://discord.com@example.com/api/webhooks/1/a', false],
    ['http://discord.com/api/webhooks/1/a', false],
  ])('%s is a Discord webhook: %s', (url, expected) => {
    expect(isAccepted(url, 'discord')).toBe(expected)
  })
})

describe('a host name', () => {
  const problemWith = (...addresses: string[]) =>
    findAddressProblem(new URL('https://hooks.example.com/'), 'user', {
      ...publicEndpointRules,
      resolve: async () => addresses.map((address) => ({ address, family: 4 })),
    })

  test('is refused when any of its addresses is private, or it has none', async () => {
    expect(await problemWith('1.1.1.1')).toBeUndefined()
    const refused = await Promise.all([problemWith('10.0.0.1'), problemWith('1.1.1.1', '10.0.0.1'), problemWith()])
    expect(new Set(refused).size).toBe(1)
    expect(refused[0]).toBeTypeOf('string')
  })

  test('of this machine is refused', async () => {
    expect(await findAddressProblem(new URL('https://localhost/'), 'user')).toBeTypeOf('string')
  })
})
