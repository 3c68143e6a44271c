/** Prices as text. */

/** `$7.99` in English for a price per month of 7.99 US dollars. Whole prices have no decimals: `$15`. */
export const formatPrice = (price: number, currency: string): string =>
  new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency,
    ...(Number.isInteger(price) ? { maximumFractionDigits: 0 } : {}),
  }).format(price)

/** The sum without the errors of binary fractions. */
export const addPrices = (...prices: readonly number[]): number =>
  Math.round(prices.reduce((sum, price) => sum + price, 0) * 100) / 100
