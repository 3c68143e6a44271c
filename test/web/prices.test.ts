/** The prices on pages. */
import { expect, test } from 'vitest'
import { addPrices, formatPrice } from '../../web/prices.ts'

test('a price has the decimals of its currency, and a whole price has none', () => {
  expect([formatPrice(7.99, 'USD'), formatPrice(15, 'EUR'), formatPrice(6.5, 'GBP'), formatPrice(900, 'JPY')]).toEqual([
    '$7.99',
    '€15',
    '£6.50',
    '¥900',
  ])
})

test('a sum has no errors of binary fractions', () => {
  expect([addPrices(14.99, 7.99, 7.99, 7.99), addPrices(0.1, 0.2)]).toEqual([38.96, 0.3])
})
