/**
 * The figures of `npm run growth`: those that are measured at each number of live sessions, and the comparisons of two
 * of them.
 */
import type { Figure } from './rows.ts'

/** By the name without the number of sessions. */
export const growthFigures = {
  active_p50: { what: 'GET /relay/active, one caller: p50', unit: 'ms' },
  active_p99: { what: 'GET /relay/active, one caller: p99', unit: 'ms' },
  health_p50: { what: 'POST /relay/health, one caller: p50', unit: 'ms' },
  health_p99: { what: 'POST /relay/health, one caller: p99', unit: 'ms' },
  start_p50: { what: 'POST /relay/start, one caller: p50', unit: 'ms' },
  start_p99: { what: 'POST /relay/start, one caller: p99', unit: 'ms' },
  metrics_p50: { what: 'GET /metrics: p50', unit: 'ms' },
  metrics_p99: { what: 'GET /metrics: p99', unit: 'ms' },
  report_cpu_api: { what: 'CPU of the api a health report', unit: 'µs' },
  report_cpu_postgres: { what: 'CPU of Postgres a health report', unit: 'µs' },
  start_cpu_api: { what: 'CPU of the api a start and its stop', unit: 'µs' },
  start_cpu_worker: { what: 'CPU of the worker a start and its stop', unit: 'µs' },
  start_cpu_postgres: { what: 'CPU of Postgres a start and its stop', unit: 'µs' },
  start_cpu_temporal: { what: 'CPU of Temporal a start and its stop', unit: 'µs' },
  idle_cpu_api: { what: 'CPU of the api without requests', unit: 'ms/s' },
  idle_cpu_worker: { what: 'CPU of the worker without requests', unit: 'ms/s' },
  idle_cpu_postgres: { what: 'CPU of Postgres without requests', unit: 'ms/s' },
  idle_cpu_temporal: { what: 'CPU of Temporal without requests', unit: 'ms/s' },
  memory_api: { what: 'memory of the api', unit: 'MB' },
  memory_worker: { what: 'memory of the worker', unit: 'MB' },
  database_size: { what: 'size of the database', unit: 'MB' },
  database_per_session: { what: 'growth of the database a live session', unit: 'KB' },
  record_per_hour: { what: 'growth of the stream records an hour of a live session', unit: 'KB' },
  history_events: { what: 'history events a live session', unit: 'events' },
} as const satisfies Record<string, Omit<Figure, 'name'>>

export type GrowthFigure = keyof typeof growthFigures

export type GrowthReading = Readonly<Record<GrowthFigure, number>>

const flat = { target: 1.5, bound: 'at_most' } as const

/** What must not grow with the number of live sessions: the sums of figures at the largest size against the base. */
export const comparisons: readonly (Figure & { readonly of: readonly GrowthFigure[] })[] = [
  {
    name: 'growth_report_cpu',
    what: 'CPU of api and Postgres a health report',
    unit: 'µs',
    ...flat,
    of: ['report_cpu_api', 'report_cpu_postgres'],
  },
  {
    name: 'growth_database_per_session',
    what: 'database a live session',
    unit: 'KB',
    ...flat,
    of: ['database_per_session'],
  },
  {
    name: 'growth_history_events',
    what: 'history events a live session',
    unit: 'events',
    ...flat,
    of: ['history_events'],
  },
  { name: 'growth_active_p50', what: 'GET /relay/active: p50', unit: 'ms', ...flat, of: ['active_p50'] },
  { name: 'growth_health_p50', what: 'POST /relay/health: p50', unit: 'ms', ...flat, of: ['health_p50'] },
  { name: 'growth_start_p50', what: 'POST /relay/start: p50', unit: 'ms', ...flat, of: ['start_p50'] },
]
