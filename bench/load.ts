/** Callers of a server: many connections as fast as they get answers, or a few whose every wait is kept. */
import { readFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import autocannon from 'autocannon'
import { median, type Reading } from './pairs.ts'

export interface Load {
  readonly url: string
  readonly pid: number
  readonly connections: number
  readonly seconds: number
  /** What each connection asks, by its number, over and over. */
  requestsOf(connection: number): autocannon.Request[]
}

/** Requests a second, and microseconds of the server's processor time for each. */
export async function throughput({ url, pid, connections, seconds, requestsOf }: Load): Promise<Reading> {
  let connection = 0
  const before = await processorMicros(pid)
  const result = await autocannon({
    url,
    connections,
    duration: seconds,
    setupClient: (client) => {
      client.setRequests(requestsOf(connection))
      connection += 1
    },
  })
  const micros = (await processorMicros(pid)) - before
  if (result.non2xx + result.errors > 0) throw new Error(`${url}: ${result.non2xx} refused, ${result.errors} failed`)
  return { 'per second': result['2xx'] / result.duration, 'µs CPU each': micros / result['2xx'] }
}

export interface Call {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Lets `callers` make all calls, each its next one when the last is answered. */
export async function callAll(calls: readonly Call[], callers: number, pid: number): Promise<Reading> {
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  const waits: number[] = []
  const left = calls.values()
  const before = await processorMicros(pid)
  const startedAt = performance.now()
  const caller = async () => {
    for (const each of left) {
      const askedAt = performance.now()
      await call(each, agent)
      waits.push(performance.now() - askedAt)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const seconds = (performance.now() - startedAt) / 1000
  const micros = (await processorMicros(pid)) - before
  agent.destroy()
  return { 'p50 ms': median(waits), 'per second': calls.length / seconds, 'µs CPU each': micros / calls.length }
}

/** Makes one call and answers what came back. Rejects unless it is a success. */
export const call = ({ method, url, headers, body }: Call, agent?: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const content = body === undefined ? {} : { 'Content-Type': 'application/json' }
    const asked = request(url, { method, agent, headers: { ...content, ...headers } }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () =>
        (answer.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(`${url}: ${answer.statusCode} ${text}`)),
      )
      answer.on('error', reject)
    })
    asked.on('error', reject)
    asked.end(body)
  })

const microsPerTick = 10_000

/** Processor time that the process has used; not a number where there is no /proc. */
async function processorMicros(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * microsPerTick
}
