/** Puts the results of `docs/proof/*.json` into a page of docs/, each between the markers of its name. */
import type { Row } from './rows.ts'
import { formatGrowth, formatTable } from './table.ts'

/** The report of `npm run chaos`. Counts may be nested, such as by kind of fault and target. */
export interface ChaosReport {
  readonly seed: number
  readonly seconds: number
  readonly accepted: Counts
  readonly faults: Counts
  readonly violations: readonly unknown[]
}

interface Counts {
  readonly [name: string]: number | Counts
}

/** Rows, the report of a chaos run, or text that is computed from results; undefined when it is not measured. */
export type Result = readonly Row[] | ChaosReport | string | undefined

const section = /(<!-- result: ([a-z-]+) -->\n)[\s\S]*?(<!-- end -->)/g

/** The names of the results that a page shows, in its order. */
export const resultNames = (page: string): string[] => [...page.matchAll(section)].map(([, , name = '']) => name)

/** @returns the page with the text of each result replaced. */
export const renderPage = (page: string, resultOf: (name: string) => Result): string =>
  page.replaceAll(
    section,
    (_, begin: string, name: string, end: string) => `${begin}\n${renderResult(resultOf(name))}\n\n${end}`,
  )

function renderResult(result: Result): string {
  if (result === undefined) return 'Not measured yet.'
  if (typeof result === 'string') return result
  return isRows(result) ? renderRows(result) : renderChaos(result)
}

const isRows = (result: readonly Row[] | ChaosReport): result is readonly Row[] => Array.isArray(result)

function renderRows(rows: readonly Row[]): string {
  const points = rows.filter((row) => row.sessions !== undefined)
  const others = rows.filter((row) => row.sessions === undefined)
  const tables = [points.length > 0 ? [formatGrowth(points)] : [], others.length > 0 ? [formatTable(others)] : []]
  return [describeRun(rows), ...tables.flat()].join('\n\n')
}

/** When and where the rows were measured, and under which load of the machine. */
function describeRun(rows: readonly Row[]): string {
  const times = rows.map((row) => row.measuredAt.replace('T', ' ').slice(0, 16)).toSorted()
  const loads = rows.map((row) => row.load).toSorted((a, b) => a - b)
  const machines = [...new Set(rows.map((row) => row.machine))].join('; ')
  const [from, to] = [times[0] ?? '', times.at(-1) ?? '']
  const until = from === to ? '' : ` to ${from.slice(0, 10) === to.slice(0, 10) ? to.slice(11) : to}`
  const load = loads[0] === loads.at(-1) ? `${loads[0]}` : `${loads[0]} to ${loads.at(-1)}`
  return `Measured ${from}${until} UTC, ${machines}, load average ${load}.`
}

function renderChaos({ seed, seconds, accepted, faults, violations }: ChaosReport): string {
  const found = violations.map(
    (violation) => `- ${typeof violation === 'string' ? violation : JSON.stringify(violation)}`,
  )
  return [
    `Seed ${seed}, ${seconds} s. Violations: ${violations.length === 0 ? 'none' : violations.length}.`,
    ...(found.length > 0 ? [found.join('\n')] : []),
    formatCounts('accepted', accepted),
    formatCounts('fault', faults),
  ].join('\n\n')
}

const formatCounts = (title: string, counts: Counts): string =>
  [`| ${title} | count |`, '|---|---|', ...flatten(counts).map(([name, count]) => `| ${name} | ${count} |`)].join('\n')

const flatten = (counts: Counts, prefix = ''): [string, number][] =>
  Object.entries(counts).flatMap(([name, value]) =>
    typeof value === 'number' ? [[`${prefix}${name}`, value] as [string, number]] : flatten(value, `${prefix}${name} `),
  )
