/** Load generators: many connections at full speed, or a few callers with the latency of each call. */
import { Agent, request } from 'node:http'
import autocannon from 'autocannon'
import { quantileOf, type Reading } from './pairs.ts'
import { cpuMicros } from './process-cost.ts'

export interface Load {
  readonly url: string
  readonly pid: number
  readonly connections: number
  readonly seconds: number
  /** The requests of a connection, by its number; repeated until the end. */
  requestsOf(connection: number): autocannon.Request[]
}

/** Measures requests per second, and microseconds of the server's CPU time per request. */
export async function throughput({ url, pid, connections, seconds, requestsOf }: Load): Promise<Reading> {
  let connection = 0
  const before = await cpuMicros(pid)
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    setupClient: (client) => {
      client.setRequests(requestsOf(connection))
      connection += 1
    },
  })
  const micros = (await cpuMicros(pid)) - before
  if (result.non2xx + result.errors > 0) throw new Error(`${url}: ${result.non2xx} refused, ${result.errors} failed`)
  return { 'per second': result['2xx'] / result.duration, 'µs CPU each': micros / result['2xx'] }
}

export interface Call {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Makes all calls with `callers` concurrent callers. */
export async function callAll(calls: readonly Call[], callers: number, pid: number): Promise<Reading> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  const latencies: number[] = []
  const left = calls.values()
  const before = await cpuMicros(pid)
  const startedAt = performance.now()
  const caller = async () => {
    for (const each of left) {
      const sentAt = performance.now()
      await call(each, agent)
      latencies.push(performance.now() - sentAt)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - startedAt) / 1000
  const micros = (await cpuMicros(pid)) - before
  agent.destroy()
  return {
    'p50 ms': quantileOf(latencies, 0.5),
    'p99 ms': quantileOf(latencies, 0.99),
    'per second': calls.length / seconds,
    'µs CPU each': micros / calls.length,
  }
}

/** Returns the response body. Rejects unless the status is below 300. */
export const call = ({ method, url, headers, body }: Call, agent?: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const content = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const sent = request(url, { method, agent, headers: { ...content, ...headers } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () =>
        (answer.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(`${url}: ${answer.statusCode} ${text}`)),
      )
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
