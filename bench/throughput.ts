/** Throughput of the most frequent requests: reads of clients and health reports of relays. */

import { fakeInstanceId } from '../test/support/fake-relay-provider.ts'
import type { BenchData } from './data.ts'
import { figures } from './figures.ts'
import { type Load, throughput } from './load.ts'
import { measurePairs } from './pairs.ts'
import { compare, type Figure, type Row } from './rows.ts'
import type { RunningProgram } from './stack.ts'

export interface Servers {
  readonly floors: RunningProgram
  readonly api: RunningProgram
  /** Number of pairs, without the warm-up pair. */
  readonly rounds: number
}

const seconds = 3

export const measureActive = (servers: Servers, data: BenchData): Promise<Row[]> =>
  measureRead(servers, data, {
    name: 'GET /relay/active',
    path: '/api/v1/relay/active',
    throughputFigure: figures.relay_active_throughput,
    cpuFigure: figures.relay_active_cpu,
  })

export const measureSession = (servers: Servers, data: BenchData): Promise<Row[]> =>
  measureRead(servers, data, {
    name: 'GET /auth/session',
    path: '/api/v1/auth/session',
    throughputFigure: figures.auth_session_throughput,
    cpuFigure: figures.auth_session_cpu,
  })

interface Read {
  readonly name: string
  readonly path: string
  readonly throughputFigure: Figure
  readonly cpuFigure: Figure
}

async function measureRead(
  { floors, api, rounds }: Servers,
  data: BenchData,
  { name, path, throughputFigure, cpuFigure }: Read,
): Promise<Row[]> {
  const load = { connections: 32, seconds }
  const userOf = (connection: number) => data.users[connection % data.users.length]
  const pairs = await measurePairs({
    what: name,
    rounds,
    floor: () =>
      throughput({
        ...load,
        ...floors,
        requestsOf: (connection) => [
          { method: 'GET', path: '/select', headers: { 'x-user': userOf(connection)?.userId ?? '' } },
        ],
      }),
    ours: () =>
      throughput({
        ...load,
        ...api,
        requestsOf: (connection) => [
          { method: 'GET', path, headers: { authorization: userOf(connection)?.bearer ?? '' } },
        ],
      }),
  })
  return [compare(throughputFigure, pairs, 'per second'), compare(cpuFigure, pairs, 'µs CPU each')]
}

/** A health report with the summary of one stream over two links. */
export const healthReport = (sessionId: string): string =>
  JSON.stringify({
    session_id: sessionId,
    instance_id: fakeInstanceId(sessionId),
    observed_at: '2026-11-21T12:00:00.000Z',
    stats: {
      publishing: true,
      bitrate_kbps: 5200,
      rtt_ms: 41.5,
      loss_pct: 0.25,
      links: 2,
      players: 1,
      bytes_total: 123_456_789,
      publishing_ms_total: 200_000,
      peak_bitrate_kbps: 6400,
      engine: 'srt-live-transmit',
    },
  })

export async function measureHealth({ floors, api, rounds }: Servers, data: BenchData): Promise<Row[]> {
  const connections = 64
  const headers = {
    'content-type': 'application/json',
    'x-relay-auth': api.config.relayAuthSecrets[0] ?? '',
  }
  const reports = data.activeSessionIds.map(healthReport)
  /** Each connection starts at another report, so that concurrent reports are of different relays. */
  const requestsTo = (path: string): Load['requestsOf'] => {
    const requests = reports.map((body) => ({ method: 'POST' as const, path, headers, body }))
    return (connection) => {
      const begin = Math.floor((connection * requests.length) / connections)
      return [...requests.slice(begin), ...requests.slice(0, begin)]
    }
  }
  const pairs = await measurePairs({
    what: 'POST /relay/health',
    rounds,
    floor: () => throughput({ connections, seconds, ...floors, requestsOf: requestsTo('/json') }),
    ours: () => throughput({ connections, seconds, ...api, requestsOf: requestsTo('/api/v1/relay/health') }),
  })
  return [
    compare(figures.relay_health_throughput, pairs, 'per second'),
    compare(figures.relay_health_cpu, pairs, 'µs CPU each'),
  ]
}
