/** The figures of `npm run bench` with their targets, by measurement. */
import { figuresOfNetwork, networks } from './bonding-networks.ts'
import type { Figure } from './rows.ts'

const atLeast = (target: number) => ({ target, bound: 'at_least' }) as const
const atMost = (target: number) => ({ target, bound: 'at_most' }) as const
const within = (target: number) => ({ target, bound: 'within' }) as const

const starts = 'POST /relay/start, new, 16 callers'
const oneStart = (where: string) => ({ what: `POST /relay/start, new, one caller, ${where}: p50`, unit: 'ms' })
const manyStarts = (where: string) => ({ what: `${starts}, ${where}: throughput`, unit: '/s', ...atLeast(150) })
const inRegionOf = (capacity: string, live: string) => `one region of ${capacity} places with ${live} live sessions`
const localStart = 'start of a relay of the local provider → active is read, one caller: p50'
const onLargeTables = 'with 10,000 live sessions and 100,000 accounts'
const cpu = 'CPU of the server process a request'

const table = {
  active: {
    relay_active_throughput: { what: 'GET /relay/active, throughput at 32 connections', unit: '/s', ...atLeast(0.7) },
    relay_active_cpu: { what: `GET /relay/active, ${cpu}`, unit: 'µs' },
  },
  health: {
    relay_health_throughput: {
      what: 'POST /relay/health, throughput at 64 connections, 500 relays',
      unit: '/s',
      ...atLeast(0.7),
    },
    relay_health_cpu: { what: `POST /relay/health, ${cpu}`, unit: 'µs' },
  },
  session: {
    auth_session_throughput: { what: 'GET /auth/session, throughput at 32 connections', unit: '/s', ...atLeast(0.6) },
    auth_session_cpu: { what: `GET /auth/session, ${cpu}`, unit: 'µs' },
  },
  start: {
    relay_start_p50: { what: `${starts}: p50`, unit: 'ms', ...atMost(1.3) },
    relay_start_throughput: { what: `${starts}: throughput`, unit: '/s', ...atLeast(0.7) },
    relay_start_cpu: { what: `${starts}: ${cpu}`, unit: 'µs' },
  },
  'start-region': {
    region_50_start_p50: oneStart(inRegionOf('50', 'no')),
    region_0_start_p50: oneStart(inRegionOf('100,000', 'no')),
    region_500_start_p50: oneStart(inRegionOf('100,000', '500')),
    region_10000_start_p50: oneStart(inRegionOf('100,000', '10,000')),
    region_start_p50_growth: {
      what: 'POST /relay/start, new, one caller: p50 with 10,000 live sessions beyond that with none',
      unit: 'ms',
      ...atMost(2),
    },
    region_50_start_throughput: manyStarts(inRegionOf('50', 'no')),
    region_0_start_throughput: manyStarts(inRegionOf('100,000', 'no')),
    region_500_start_throughput: manyStarts(inRegionOf('100,000', '500')),
    region_10000_start_throughput: manyStarts(inRegionOf('100,000', '10,000')),
  },
  'sign-in': {
    sign_in_login: {
      what: 'POST /auth/login, wrong password: unknown address (floor), known address',
      unit: 'ms',
      ...within(0.15),
    },
    sign_in_forgot: {
      what: 'POST /auth/password/forgot: unknown address (floor), known address',
      unit: 'ms',
      ...within(0.15),
    },
  },
  metrics: {
    metrics_page: { what: 'GET /metrics with 100,000 session rows', unit: 'ms', ...atMost(50) },
  },
  stop: {
    relay_ready_p50: { what: 'first health report → active is read, one caller: p50', unit: 'ms', ...atMost(1.5) },
    relay_stop_p50: { what: 'POST /relay/stop, one caller: p50', unit: 'ms', ...atMost(1.3) },
  },
  'first-task': {
    first_task_p50: {
      what: 'start answered → first task of its workflow done, one caller: p50',
      unit: 'ms',
      ...atMost(1.3),
    },
  },
  lifecycle: {
    history_events_per_report: {
      what: 'Temporal events per steady report (1,000 reports)',
      unit: 'events',
      ...atMost(0),
    },
    history_events_plain: { what: 'history of a session: start, active, stop', unit: 'events', ...atMost(40) },
    history_events_eventful: {
      what: 'the same with two losses of health and a cancelled stop',
      unit: 'events',
      ...atMost(60),
    },
  },
  large: {
    large_metrics: { what: `GET /metrics ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_overview: { what: `GET /admin/overview ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_capacity: { what: `GET /capacity/status ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_sessions: { what: `GET /admin/sessions, active ones, ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_sessions_region: {
      what: `GET /admin/sessions, a region without any, ${onLargeTables}`,
      unit: 'ms',
      ...atMost(50),
    },
    large_users: { what: `GET /admin/users, a common plan, ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_users_rare: { what: `GET /admin/users, a plan without any, ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_users_email: { what: `GET /admin/users, an address, ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_history: { what: `GET /relay/sessions ${onLargeTables}`, unit: 'ms', ...atMost(50) },
    large_usage: { what: `GET /usage/days ${onLargeTables}`, unit: 'ms', ...atMost(50) },
  },
  memory: {
    worker_memory: {
      what: 'memory of 10,000 live sessions on one worker, beyond the empty worker (floor)',
      unit: 'MB',
      ...atMost(500),
    },
  },
  warm: {
    warm_admission_p50: {
      what: 'start on a warm instance answered → its first admitted handshake, one caller: p50',
      unit: 'ms',
      ...atMost(1.2),
    },
    warm_start_p50: { what: `${localStart}, with a warm instance`, unit: 'ms' },
    cold_start_p50: { what: `${localStart}, without one`, unit: 'ms' },
  },
  video: {
    video_packets: { what: 'video at 48 Mbit/s to one player: packets per second of CPU time', unit: '/s' },
    video_cpu: { what: 'CPU of a relay with its engine at 48 Mbit/s, one player', unit: '% of a core', ...atMost(100) },
    video_stage_cpu: {
      what: 'CPU of a relay without its engine a Mbit of video, at 48 Mbit/s to one player: stage off (floor), on',
      unit: 'µs',
      ...atMost(1.3),
    },
    video_stage_family_cpu: { what: 'the same with its engine', unit: 'µs', ...atMost(1.3) },
    video_stage_p50: { what: 'latency that the stage adds at 6 Mbit/s: p50', unit: 'ms' },
    video_stage_p99: { what: 'latency that the stage adds at 6 Mbit/s: p99', unit: 'ms', ...atMost(1) },
  },
} as const satisfies Record<string, Record<string, Omit<Figure, 'name'>>>

type Listed = keyof typeof table

/** The figures of `bonding` are those of its networks. */
export type Measurement = Listed | 'bonding'

type Names<Each = (typeof table)[Listed]> = Each extends unknown ? keyof Each : never

export const measurements: readonly Measurement[] = [...(Object.keys(table) as Listed[]), 'bonding']

/** All figures of a measurement. */
export const figuresOf = (measurement: Measurement): readonly Figure[] =>
  measurement === 'bonding'
    ? networks.flatMap((network) => Object.values(figuresOfNetwork(network)))
    : Object.entries(table[measurement]).map(([name, figure]) => ({ name, ...figure }))

const all = new Map(
  measurements.flatMap((measurement) => figuresOf(measurement).map((figure) => [figure.name, figure])),
)

export const figures = Object.fromEntries(all) as Readonly<Record<Names, Figure>>
