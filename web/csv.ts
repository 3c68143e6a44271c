/** Tables as CSV (RFC 4180). */

/** A value that a spreadsheet would run as a formula is preceded by an apostrophe, which makes it text. */
const escapeFormula = (value: string): string => (/^[=+\-@\t\r]/.test(value) ? `'${value}` : value)

const formatField = (value: string | number): string => {
  const text = typeof value === 'number' ? String(value) : escapeFormula(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const formatCsv = (rows: readonly (readonly (string | number)[])[]): string =>
  rows.map((row) => `${row.map(formatField).join(',')}\r\n`).join('')
