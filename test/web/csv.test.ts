/** The CSV of an export, without formulas. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatCsv } from '../../web/csv.ts'

/** Reads CSV by RFC 4180, independently of the writer. */
function parse(text: string): string[][] {
  const rows: string[][] = []
  let [row, field, isQuoted]: [string[], string, boolean] = [[], '', false]
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? ''
    if (isQuoted && char === '"' && text[at + 1] === '"') {
      field += '"'
      at++
    } else if (char === '"') isQuoted = !isQuoted
    else if (!isQuoted && char === ',') {
      row.push(field)
      field = ''
    } else if (!isQuoted && char === '\r' && text[at + 1] === '\n') {
      rows.push([...row, field])
      row = []
      field = ''
      at++
    } else field += char
  }
  return rows
}

test('any values come back as they were, except that none is a formula', () => {
  const anyValue = fc.oneof(
    fc.string(),
    fc.constantFrom('=1+1', '+1', '-1', '@x', '\tx', '\rx', 'a"b', 'a,b', 'a\r\nb'),
  )
  fc.assert(
    fc.property(fc.array(fc.array(anyValue, { minLength: 1, maxLength: 4 }), { maxLength: 5 }), (rows) => {
      const read = parse(formatCsv(rows))
      expect(read.map((row) => row.map((value) => value.replace(/^'(?=[=+\-@\t\r])/, '')))).toEqual(
        rows.map((row) => row.map((value) => value.replace(/^'(?=[=+\-@\t\r])/, ''))),
      )
      for (const value of read.flat()) expect(value).not.toMatch(/^[=+\-@\t\r]/)
    }),
  )
})

test('numbers stay numbers', () => {
  expect(formatCsv([['x', -5]])).toBe('x,-5\r\n')
})
