/** Formats the results as a Markdown table. */
import type { Row } from './pairs.ts'

export function formatTable(rows: readonly Row[]): string {
  const lines = rows.map(({ what, floor, ours, ratio, target, met }) => [
    what,
    floor,
    ours,
    ratio ? `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)})` : '–',
    target,
    target === '–' ? '' : met ? 'ok' : '**missed**',
  ])
  const head = ['what', 'floor', 'ours', 'ratio: median (min to max)', 'target', '']
  const all = [head, head.map(() => '---'), ...lines]
  const widths = head.map((_, column) => Math.max(...all.map((line) => [...(line[column] ?? '')].length)))
  const padded = (line: readonly string[]) =>
    line.map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
  return all.map((line) => `| ${padded(line).join(' | ')} |`).join('\n')
}
