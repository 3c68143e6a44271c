/** Throughput of the most frequent requests: reads of clients and health reports of relays. */

import { fakeInstanceId } from '../test/support/fake-relay-provider.ts'
import type { BenchData } from './data.ts'
import { type Load, throughput } from './load.ts'
import { compare, measurePairs, type Row } from './pairs.ts'
import type { RunningProgram } from './stack.ts'

export interface Servers {
  readonly floors: RunningProgram
  readonly api: RunningProgram
}

const rounds = 5
const seconds = 3

export const measureActive = (servers: Servers, data: BenchData): Promise<Row[]> =>
  measureRead(servers, data, { name: 'GET /relay/active', path: '/api/v1/relay/active', atLeast: 0.7 })

export const measureSession = (servers: Servers, data: BenchData): Promise<Row[]> =>
  measureRead(servers, data, { name: 'GET /auth/session', path: '/api/v1/auth/session', atLeast: 0.4 })

async function measureRead(
  { floors, api }: Servers,
  data: BenchData,
  { name, path, atLeast }: { name: string; path: string; atLeast: number },
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
  return [
    compare(`${name}, throughput at ${load.connections} connections`, pairs, {
      ...{ figure: 'per second', unit: '/s', atLeast },
    }),
  ]
}

/** A health report with the summary of one stream over two links. */
export const healthReport = (sessionId: string): string =>
  JSON.stringify({
    session_id: sessionId,
    instance_id: fakeInstanceId(sessionId),
    observed_at: '2026-11-21T12:00:00.000Z',
    stats: {
      ...{ publishing: true, bitrate_kbps: 5200, rtt_ms: 41.5, loss_pct: 0.25, links: 2, players: 1 },
      ...{ bytes_total: 123_456_789, engine: 'srt-live-transmit' },
    },
  })

export async function measureHealth({ floors, api }: Servers, data: BenchData): Promise<Row[]> {
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
  const what = `POST /relay/health, throughput at ${connections} connections, ${reports.length} relays`
  return [compare(what, pairs, { figure: 'per second', unit: '/s', atLeast: 0.7 })]
}
