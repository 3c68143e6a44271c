/** Formats rows as a Markdown table. */
import { formatNumber } from './pairs.ts'
import type { Row } from './rows.ts'

const head = ['what', 'floor', 'ours', 'ratio: median (min to max)', 'target', '']

/** One line a row, with its target and whether it is met. */
export function formatTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => [
    row.what,
    withUnit(row.floor, row.unit),
    row.error === undefined ? oursOf(row) : `failed: ${oneLine(row.error)}`,
    row.ratio === null ? '–' : `${row.ratio.toFixed(2)} (${row.low?.toFixed(2)} to ${row.high?.toFixed(2)})`,
    targetOf(row),
    row.target === null ? '' : row.met ? 'ok' : '**missed**',
  ])
  return formatCells([head, ...lines])
}

/** One line a figure and one column a number of live sessions. */
export function formatGrowth(rows: readonly Row[]): string {
  const sizes = [...new Set(rows.map((row) => row.sessions ?? 0))].toSorted((a, b) => a - b)
  const figures = [...new Set(rows.map((row) => row.what))]
  const cellOf = (what: string, size: number) => {
    const row = rows.find(({ what: figure, sessions }) => figure === what && sessions === size)
    return row === undefined ? '–' : row.error === undefined ? formatNumber(row.ours ?? Number.NaN) : 'failed'
  }
  const unitOf = (what: string) => rows.find((row) => row.what === what)?.unit ?? ''
  return formatCells([
    ['live sessions', ...sizes.map((size) => size.toLocaleString('en')), 'unit'],
    ...figures.map((what) => [what, ...sizes.map((size) => cellOf(what, size)), unitOf(what)]),
  ])
}

/** @param cells the first line is the head. */
export function formatCells([first = [], ...lines]: readonly (readonly string[])[]): string {
  const all = [first, first.map(() => '---'), ...lines]
  const widths = first.map((_, column) => Math.max(...all.map((line) => [...(line[column] ?? '')].length)))
  const padded = (line: readonly string[]) =>
    line.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
  return all.map((line) => `| ${padded(line).join(' | ')} |`).join('\n')
}

const withUnit = (value: number | null, unit: string): string =>
  value === null ? '–' : `${formatNumber(value)} ${unit}`

function oursOf({ ours, unit, ratio, low, high }: Row): string {
  const spread =
    ratio === null && low !== null && high !== null ? ` (${formatNumber(low)} to ${formatNumber(high)})` : ''
  return withUnit(ours, unit) + spread
}

function targetOf({ target, bound, ratio, ours, unit }: Row): string {
  if (target === null) return '–'
  if (bound === 'within') return `${1 - target} to ${1 + target}`
  const limit = `${bound === 'at_least' ? '≥' : '≤'} ${target}`
  return ratio === null && ours !== null ? `${limit} ${unit}` : limit
}

/** A cell ends at a line break or a bar. */
const oneLine = (text: string): string => text.split('\n')[0]?.replaceAll('|', '/') ?? ''
