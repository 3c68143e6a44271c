/** The masked form of an address. */
import { expect, test } from 'vitest'
import { maskEmail } from '../../../domain/identity/masked-email.ts'

test.for([
  ['streamer@example.com', 's•••@e•••.com'],
  ['a@b.co.uk', 'a•••@b•••.uk'],
  ['ü@münchen.de', 'ü•••@m•••.de'],
  ['"quoted@part"@example.org', '•••@e•••.org'],
  ['streamer@localhost', 's•••@l•••'],
  ['streamer@.com', 's•••@•••'],
  ['@example.com', '•••@e•••.com'],
  ['example.com', '•••@e•••.com'],
  [`streamer@example.${'x'.repeat(24)}`, `s•••@e•••.${'x'.repeat(24)}`],
  [`streamer@example.${'x'.repeat(25)}`, 's•••@e•••'],
])('%s is masked as %s', ([address = '', masked]) => {
  expect(maskEmail(address)).toBe(masked)
})

test.for(['`a`@`b`.`c`', '<img src=x>@[1.2.3.4]', '*_[x](y)@z.<b>', 'no address', '', '@'])(
  'nothing that Markdown interprets is left of %j',
  (address) => {
    expect(maskEmail(address)).toMatch(/^[\p{L}\p{N}]?•••@[\p{L}\p{N}]?•••(\.[a-z0-9-]+)?$/u)
  },
)
