import { describe, expect, test } from 'vitest'
import { addon, begin, day, fact, firstMonth, monthLater, plan } from './billing-facts.ts'

describe('a full refund where no payment was told of', () => {
  const two = addon('update_addon', begin, { quantity: 2 })

  test.each([null, 'i9'])('takes add-ons away, of the invoice %s', (invoiceId) => {
    const refunded = addon('refund', begin + day, { invoiceId })
    expect(plan(begin + day, firstMonth, two, refunded)).toBe('paid active 0')
    expect(plan(begin + day, refunded, two, firstMonth)).toBe('paid active 0')
  })

  test('leaves add-ons that were bought after it', () => {
    const again = addon('update_addon', begin + 2 * day, { quantity: 1 })
    expect(plan(begin + 3 * day, firstMonth, two, addon('refund', begin + day), again)).toBe('paid active 1')
  })

  test('ends a plan of which nothing but its cancellation is known', () => {
    const cancelled = fact('cancelled', begin, { periodEnd: monthLater })
    expect(plan(begin + day, cancelled)).toBe('paid cancelled 0')
    expect(plan(begin + day, cancelled, fact('refund', begin + day))).toBe('free none 0')
  })

  test('of a part takes nothing away', () => {
    const refunded = addon('refund', begin + day, { amount: 'partial' })
    expect(plan(begin + day, firstMonth, two, refunded)).toBe('paid active 2')
  })
})
