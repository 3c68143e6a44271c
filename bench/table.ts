/** Formats rows as a Markdown table. */
import { formatNumber } from './pairs.ts'
import type { Row } from './rows.ts'

const head = ['what', 'floor', 'ours', 'ratio: median (min to max)', 'target', '']

export function formatTable(rows: readonly Row[]): string {
  const lines = rows.map((row) => [
    row.what,
    withUnit(row.floor, row.unit),
    row.error === undefined ? oursOf(row) : `failed: ${oneLine(row.error)}`,
    row.ratio === null ? '–' : `${row.ratio.toFixed(2)} (${row.low?.toFixed(2)} to ${row.high?.toFixed(2)})`,
    targetOf(row),
    row.target === null ? '' : row.met ? 'ok' : '**missed**',
  ])
  const all = [head, head.map(() => '---'), ...lines]
  const widths = head.map((_, column) => Math.max(...all.map((line) => [...(line[column] ?? '')].length)))
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
