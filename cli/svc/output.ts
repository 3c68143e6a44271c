/** What commands print: JSON as the API sent it, tables, and one value per line. */
import { styleText } from 'node:util'

export type Cell = string | number | boolean | null | undefined

export interface Column<Row> {
  readonly header: string
  readonly value: (row: Row) => Cell
}

/** Printed for a missing value, so that a column has no gaps for `awk`. */
const missing = '-'

export const printLine = (line: string): void => {
  process.stdout.write(`${line}\n`)
}

/** For remarks beside the result, so that a pipe receives the result only. */
export const printRemark = (line: string): void => {
  process.stderr.write(`${line}\n`)
}

export const printJson = (value: unknown): void => printLine(JSON.stringify(value, null, 2))

export function printTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
  const lines = rows.map((row) => columns.map(({ value }) => formatCell(value(row))))
  const widths = columns.map(({ header }, index) =>
    Math.max(header.length, ...lines.map((line) => line[index]?.length ?? 0)),
  )
  const align = (cells: readonly string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  // Plain where the output is no terminal, and with NO_COLOR.
  printLine(styleText('bold', align(columns.map(({ header }) => header))))
  for (const line of lines) printLine(align(line))
}

export type Field = readonly [name: string, value: Cell]

/** One value per line, behind its name. */
export function printFields(fields: readonly Field[]): void {
  const width = Math.max(...fields.map(([name]) => name.length))
  for (const [name, value] of fields) printLine(`${name.padEnd(width)}  ${formatCell(value)}`)
}

export const printHeading = (text: string): void => printLine(`\n${styleText('bold', text)}`)

/** `2026-12-03 14:05:09 UTC`. */
export const formatTime = (time: string | Date | null | undefined): Cell =>
  (time instanceof Date ? time.toISOString() : time)?.replace(/T(\d\d:\d\d:\d\d)(\.\d+)?Z$/, ' $1 UTC')

/** `2 d 3 h`, `3 h 20 min`, `5 min` or `40 s`. */
export function formatDuration(seconds: number): string {
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)]
  if (days > 0) return `${days} d ${hours % 24} h`
  if (hours > 0) return `${hours} h ${minutes % 60} min`
  return minutes > 0 ? `${minutes} min` : `${Math.round(seconds)} s`
}

/** Without control characters: users choose some of the texts, which must not control the terminal. */
export function formatCell(value: Cell): string {
  if (value === null || value === undefined || value === '') return missing
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return String(value).replaceAll(/\p{Cc}/gu, ' ')
}
