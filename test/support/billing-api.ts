/** A stand-in for a billing provider's API: a server on a free port that answers what the test says, or breaks. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'

export interface ApiRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

export interface ApiAnswer {
  readonly status?: number
  readonly json: unknown
}

export type ApiBreakage = 'status 500' | 'status 401' | 'html' | 'nothing' | 'hang up'

export interface BillingApi {
  readonly url: string
  /** What it was asked, the newest last. */
  readonly requests: readonly ApiRequest[]
  /** From now on; undefined is 404. */
  answer: (request: ApiRequest) => ApiAnswer | undefined
  /** Breaks requests that the filter picks, all of them without one; without `how` it is well again. */
  break(how?: ApiBreakage, filter?: (request: ApiRequest) => boolean): void
}

/** Starts it for the tests of a file. */
export async function startBillingApi(): Promise<BillingApi> {
  const requests: ApiRequest[] = []
  let broken: { how: ApiBreakage; filter: (request: ApiRequest) => boolean } | undefined
  const server = createServer(async (incoming, response) => {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '', 'http://localhost')
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    const request = { method: incoming.method ?? '', path, query, headers: incoming.headers, body }
    requests.push(request)
    if (broken?.filter(request)) return fail[broken.how](response)
    const { status = 200, json } = api.answer(request) ?? { status: 404, json: { error: { message: 'not found' } } }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const api: BillingApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: () => undefined,
    break: (how, filter = () => true) => {
      broken = how && { how, filter }
    },
  }
  return api
}

const fail: Record<ApiBreakage, (response: ServerResponse) => unknown> = {
  'status 500': (response) => response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{}}'),
  'status 401': (response) => response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{}}'),
  html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>We are down</h1>'),
  nothing: () => {},
  'hang up': (response) => response.destroy(),
}
