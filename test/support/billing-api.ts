/** A double of a billing provider's API: a server on a free port whose responses and failures the test sets. */
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

export interface ApiResponse {
  readonly status?: number
  readonly json: unknown
}

export type ApiFailure = 'status 500' | 'status 401' | 'html' | 'nothing' | 'hang up'

export interface BillingApiDouble {
  readonly url: string
  /** The newest last. */
  readonly requests: readonly ApiRequest[]
  /** Set by the test; undefined is 404. */
  answer: (request: ApiRequest) => ApiResponse | undefined
  /** Makes the requests that match the filter fail until `recover`; all of them by default. */
  failWith(failure: ApiFailure, filter?: (request: ApiRequest) => boolean): void
  /** Also closes the connections of requests that wait for an answer. */
  recover(): void
}

/** The server closes at the end of the test file. */
export async function startBillingApiDouble(): Promise<BillingApiDouble> {
  const requests: ApiRequest[] = []
  const unanswered: ServerResponse[] = []
  let active: { failure: ApiFailure; filter: (request: ApiRequest) => boolean } | undefined
  const server = createServer(async (incoming, response) => {
    const { pathname: path, searchParams: query } = new URL(incoming.url ?? '', 'http://localhost')
    let body = ''
    for await (const chunk of incoming.setEncoding('utf8')) body += chunk
    const request = { method: incoming.method ?? '', path, query, headers: incoming.headers, body }
    requests.push(request)
    if (active?.filter(request)) {
      if (active.failure === 'nothing') return void unanswered.push(response)
      return answerWith[active.failure](response)
    }
    const { status = 200, json } = api.answer(request) ?? { status: 404, json: { error: { message: 'not found' } } }
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const api: BillingApiDouble = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: () => undefined,
    failWith: (failure, filter = () => true) => {
      active = { failure, filter }
    },
    recover: () => {
      active = undefined
      for (const response of unanswered.splice(0)) response.destroy()
    },
  }
  return api
}

const answerWith: Record<Exclude<ApiFailure, 'nothing'>, (response: ServerResponse) => unknown> = {
  'status 500': (response) => response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{}}'),
  'status 401': (response) => response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{}}'),
  html: (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>We are down</h1>'),
  'hang up': (response) => response.destroy(),
}
