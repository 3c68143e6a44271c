/** Draws the growth figures as SVG, without a browser. The same rows give the same text. */
import { parse, View } from 'vega'
import { compile, type TopLevelSpec } from 'vega-lite'
import type { GrowthFigure } from './growth-figures.ts'
import type { Row } from './rows.ts'

interface Plot {
  readonly title: string
  readonly yTitle: string
  readonly scale: 'linear' | 'log'
  /** The line of each figure, by its label. */
  readonly lines: Readonly<Record<string, GrowthFigure>>
}

/** By the name of the file in docs/images. */
const plots: Readonly<Record<string, Plot>> = {
  'growth-latency': {
    title: 'Response time, p50, one caller',
    yTitle: 'ms',
    scale: 'log',
    lines: {
      'GET /relay/active': 'active_p50',
      'POST /relay/health': 'health_p50',
      'POST /relay/start': 'start_p50',
      'GET /metrics': 'metrics_p50',
    },
  },
  'growth-report-cpu': {
    title: 'CPU a health report',
    yTitle: 'µs',
    scale: 'linear',
    lines: { api: 'report_cpu_api', Postgres: 'report_cpu_postgres' },
  },
  'growth-idle-cpu': {
    title: 'CPU without requests',
    yTitle: 'ms a second',
    scale: 'linear',
    lines: {
      api: 'idle_cpu_api',
      worker: 'idle_cpu_worker',
      Postgres: 'idle_cpu_postgres',
      Temporal: 'idle_cpu_temporal',
    },
  },
  'growth-memory': {
    title: 'Memory',
    yTitle: 'MB',
    scale: 'linear',
    lines: { api: 'memory_api', worker: 'memory_worker' },
  },
  'growth-database': {
    title: 'Growth of the database a live session',
    yTitle: 'KB',
    scale: 'linear',
    lines: { database: 'database_per_session' },
  },
  'growth-history': {
    title: 'History events a live session',
    yTitle: 'events',
    scale: 'linear',
    lines: { Temporal: 'history_events' },
  },
}

/** The text of each figure by the name of its file. */
export async function drawGrowth(rows: readonly Row[]): Promise<ReadonlyMap<string, string>> {
  const drawn = new Map<string, string>()
  for (const [name, plot] of Object.entries(plots)) drawn.set(`${name}.svg`, await draw(plot, rows))
  return drawn
}

async function draw(plot: Plot, rows: readonly Row[]): Promise<string> {
  const view = new View(parse(compile(specOf(plot, rows)).spec), { renderer: 'none' })
  const svg = await view.toSVG()
  view.finalize()
  return `${svg}\n`
}

/** Readable on light and dark backgrounds. */
const grey = '#7d8590'
const colours = ['#2f81f7', '#e8590c', '#2da44e', '#a371f7']

const pointsOf = (label: string, figure: GrowthFigure, rows: readonly Row[]) =>
  rows
    .filter((row) => row.sessions !== undefined && row.ours !== null)
    .filter((row) => row.name === `growth_${figure}_${row.sessions}`)
    .map((row) => ({ label, sessions: row.sessions, value: row.ours }))

const specOf = ({ title, yTitle, scale, lines }: Plot, rows: readonly Row[]): TopLevelSpec => ({
  title,
  width: 520,
  height: 220,
  background: 'transparent',
  data: { values: Object.entries(lines).flatMap(([label, figure]) => pointsOf(label, figure, rows)) },
  mark: { type: 'line', point: true, strokeWidth: 2 },
  encoding: {
    x: {
      field: 'sessions',
      type: 'quantitative',
      title: 'live sessions',
      scale: { type: 'log' },
      axis: { format: ',d', values: [10, 100, 1000, 10_000] },
    },
    y: {
      field: 'value',
      type: 'quantitative',
      title: yTitle,
      scale: scale === 'log' ? { type: 'log' } : { type: 'linear', zero: true },
    },
    color: {
      field: 'label',
      type: 'nominal',
      title: null,
      sort: null,
      scale: { range: colours },
      legend: Object.keys(lines).length > 1 ? {} : null,
    },
  },
  config: {
    font: 'sans-serif',
    title: { color: grey, fontSize: 14 },
    axis: {
      labelColor: grey,
      titleColor: grey,
      tickColor: grey,
      domainColor: grey,
      gridColor: grey,
      gridOpacity: 0.25,
    },
    legend: { labelColor: grey },
    view: { stroke: null },
  },
})
