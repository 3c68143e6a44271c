/** The addresses that count as this machine. */
import { expect, test } from 'vitest'
import { isLoopback } from '../../platform/loopback.ts'

test.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1'])('%s is an address of this machine', (ip) => {
  expect(isLoopback(ip)).toBe(true)
})

test.each(['', 'localhost', '128.0.0.1', '10.0.0.1', '192.168.1.2', '::', '::ffff:10.0.0.1', 'fe80::1', '2001:db8::1'])(
  '%s is not',
  (ip) => {
    expect(isLoopback(ip)).toBe(false)
  },
)
