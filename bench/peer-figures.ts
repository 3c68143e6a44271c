/** The figures of `npm run peers` with their targets. The peer is the floor. */
import type { Figure } from './rows.ts'

const check = 'session check, 32 connections: better-auth get-session (floor), GET /auth/session'
const refresh = 'refresh, 32 callers: better-auth get-session that extends the session (floor), POST /auth/refresh'
const life = 'relay life, one caller: DBOS (floor), the service'
const starts = 'start answered, 16 callers: DBOS (floor), POST /relay/start'

const table = {
  session_check: { what: `${check}, no cookie cache`, unit: '/s' },
  session_check_cached: { what: `${check}, better-auth with a cookie cache of 5 minutes`, unit: '/s' },
  refresh_throughput: { what: `${refresh}: throughput`, unit: '/s' },
  refresh_p50: { what: `${refresh}: p50`, unit: 'ms' },
  life_start_p50: { what: `${life}: start answered, p50`, unit: 'ms', target: 1, bound: 'at_most' },
  life_active_p50: { what: `${life}: start → active is read, p50`, unit: 'ms' },
  life_stop_p50: { what: `${life}: stop answered in grace, p50`, unit: 'ms' },
  starts_p50: { what: `${starts}: p50`, unit: 'ms', target: 1, bound: 'at_most' },
  starts_p99: { what: `${starts}: p99`, unit: 'ms' },
  starts_throughput: { what: `${starts}: throughput`, unit: '/s' },
  starts_limited_p50: {
    what: `${starts}: p50, DBOS with the limit of the plan`,
    unit: 'ms',
    target: 1,
    bound: 'at_most',
  },
  starts_unqueued_p50: {
    what: `${starts}: p50, DBOS without a queue, which may start two sessions of a connection`,
    unit: 'ms',
  },
} as const satisfies Record<string, Omit<Figure, 'name'>>

export const peerFigures = Object.fromEntries(
  Object.entries(table).map(([name, figure]) => [name, { name, ...figure }]),
) as Readonly<Record<keyof typeof table, Figure>>
