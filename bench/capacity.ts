/** The capacity model of docs/performance.md: measured CPU times, multiplied by the rates of one relay. */
import type { GrowthFigure } from './growth-figures.ts'
import type { Row } from './rows.ts'
import { formatCells } from './table.ts'

/** The rates of one live relay with its plugin. Assumptions, except for the first, which is the default interval. */
const reportsPerSecond = 1 / 10
const readsPerSecond = 1 / 5
const startsPerSecond = 1 / 7200
/** The share of a core that is used on average, so that peaks and a lost replica fit into the rest. */
const usedShare = 0.6

const sizes = [1000, 10_000, 100_000, 1_000_000]
const parts = ['api', 'worker', 'postgres', 'temporal'] as const
type Part = (typeof parts)[number]
const labels: Readonly<Record<Part, string>> = {
  api: 'api',
  worker: 'worker',
  postgres: 'Postgres',
  temporal: 'Temporal (development server)',
}

/**
 * @param growth the rows of `npm run growth`.
 * @param bench the rows of `npm run bench`.
 * @returns Markdown; undefined while a figure that the model needs is not measured.
 */
export function renderCapacity(growth: readonly Row[], bench: readonly Row[]): string | undefined {
  const measured = Math.max(0, ...growth.map((row) => row.sessions ?? 0))
  const figureOf = (rows: readonly Row[], name: string) => rows.find((row) => row.name === name)?.ours ?? Number.NaN
  const grown = (figure: GrowthFigure) => figureOf(growth, `growth_${figure}_${measured}`)
  const idle = (part: Part) => (grown(`idle_cpu_${part}`) * 1000) / measured
  const report = { api: grown('report_cpu_api'), worker: 0, postgres: grown('report_cpu_postgres'), temporal: 0 }
  // The share of Postgres in a read is not measured: counted as that of a report.
  const read = { api: figureOf(bench, 'relay_active_cpu'), worker: 0, postgres: report.postgres, temporal: 0 }
  const lines = parts.map((part) => {
    const start = grown(`start_cpu_${part}`)
    const perSecond =
      report[part] * reportsPerSecond + read[part] * readsPerSecond + start * startsPerSecond + idle(part)
    return { part, report: report[part], read: read[part], start, idle: idle(part), perSecond }
  })
  if (lines.some(({ perSecond }) => Number.isNaN(perSecond))) return undefined

  const costs = formatCells([
    ['CPU, µs', 'a report', 'a read', 'a start and its stop', 'a second, live', 'a relay and second', 'relays a core'],
    ...lines.map(({ part, report: r, read: g, start, idle: live, perSecond }) => [
      labels[part],
      ...[r, g, start, live, perSecond].map(round),
      round((usedShare * 1e6) / perSecond),
    ]),
  ])
  const rates: [string, number][] = [
    ['reports a second', reportsPerSecond],
    ['reads a second', readsPerSecond],
    ['starts a second', startsPerSecond],
  ]
  const coreLines = lines.map(({ part, perSecond }) => [
    `cores: ${labels[part]}`,
    ...sizes.map((size) => round((size * perSecond) / 1e6 / usedShare)),
  ])
  const databaseLine = sizes.map((size) => round((size * grown('database_per_session')) / 1e6))
  const steps = formatCells([
    ['relays', ...sizes.map((size) => size.toLocaleString('en'))],
    ...rates.map(([label, rate]) => [label, ...sizes.map((size) => round(size * rate))]),
    ...coreLines,
    ['GB of live sessions', ...databaseLine],
  ])
  return `${costs}\n\n${steps}`
}

/** Two significant digits. */
const round = (value: number): string => Number(value.toPrecision(2)).toLocaleString('en', { maximumFractionDigits: 4 })
