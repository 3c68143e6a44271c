/**
 * A double of the Hetzner Cloud API, version 1, written from https://docs.hetzner.cloud: shapes, codes, paging, rate
 * limit. Also used by measurements, so it imports nothing of Vitest.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HetznerProject } from './hetzner-project.ts'
import { answerRequest, type Reply, refusal } from './hetzner-routes.ts'

export { HetznerProject } from './hetzner-project.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
  readonly at: number
}

/** Which requests a fault applies to; all by default. */
interface Target {
  readonly method?: string
  /** Matches the path after the version, with the query: `/servers?name=x`. */
  readonly url?: RegExp
}

/**
 * `answer`: with this reply, without performing the request. `lose`: performs it and closes the connection without a
 * reply.
 */
type Fault = (
  | { readonly type: 'answer'; readonly reply: Reply }
  | { readonly type: 'lose' }
  | { readonly type: 'hang' }
) &
  Target & { times: number }

/** `performed`: the reply is not sent yet. `sent`: the reply has been written to the connection. */
export type RequestStage = 'received' | 'performed' | 'sent'

export interface HetznerServer {
  readonly apiUrl: string
  readonly token: string
  readonly readOnlyToken: string
  readonly project: HetznerProject
  /** All requests so far, oldest first. */
  readonly requests: ReceivedRequest[]
  /** As the headers report it. It recovers by one each second, as at Hetzner. */
  readonly rateLimit: { readonly limit: number; remaining: number }
  /** The delay of each reply. */
  latencyMillis: number
  /**
   * Called at each stage of each request, which waits for it. A received request that is to be dropped is not
   * performed.
   */
  onStage: ((stage: RequestStage, request: ReceivedRequest) => Promise<'drop' | undefined>) | undefined
  /** Refuses all requests with 429 for a time. */
  throttle(millis: number, headers?: Readonly<Record<string, string>>): void
  /** Refuses the next requests with an error code. */
  refuse(times: number, code: string, options?: Target & { status?: number; message?: string }): void
  /** Answers the next requests with a reply, without performing them. */
  reply(times: number, reply: Reply, headers?: Readonly<Record<string, string>>): void
  /** Answers the next requests with 500 and no JSON. */
  fail(times: number, target?: Target): void
  /** Performs the next requests and closes their connections without a reply. */
  loseReplies(times: number, target?: Target): void
  /** Never answers the next requests. */
  hang(times: number, target?: Target): void
  close(): Promise<void>
}

export async function startHetznerServer({ token = 'hetzner-test-token' } = {}): Promise<HetznerServer> {
  const project = new HetznerProject()
  const requests: ReceivedRequest[] = []
  const faults: Fault[] = []
  const readOnlyToken = `${token}-read`
  const rateLimit = { limit: 3600, remaining: 3600 }
  let refilledAt = Date.now()
  let throttled = { until: 0, headers: {} as Readonly<Record<string, string>> }

  const rateHeaders = () => {
    const isThrottled = Date.now() < throttled.until
    const secondsToFull = rateLimit.limit - rateLimit.remaining
    return {
      'ratelimit-limit': String(rateLimit.limit),
      'ratelimit-remaining': String(isThrottled ? 0 : Math.max(0, Math.floor(rateLimit.remaining))),
      'ratelimit-reset': String(Math.ceil(isThrottled ? throttled.until / 1000 : Date.now() / 1000 + secondsToFull)),
      ...(isThrottled ? throttled.headers : {}),
    }
  }

  const countRequest = (): boolean => {
    const now = Date.now()
    rateLimit.remaining = Math.min(rateLimit.limit, rateLimit.remaining + (now - refilledAt) / 1000)
    refilledAt = now
    if (now < throttled.until || rateLimit.remaining < 1) return false
    rateLimit.remaining -= 1
    return true
  }

  const takeFault = ({ method, path, query }: ReceivedRequest): Fault | undefined => {
    const url = `${path}?${query}`
    const fault = faults.find(
      (candidate) =>
        candidate.times > 0 && (candidate.method ?? method) === method && (candidate.url?.test(url) ?? true),
    )
    if (fault) fault.times -= 1
    return fault
  }

  const answer = async (
    request: ReceivedRequest,
    authorization: string | undefined,
  ): Promise<Reply | 'close' | 'hang'> => {
    if (!countRequest()) return refusal(429, 'rate_limit_exceeded', 'limit of 3600 requests per hour reached')
    const fault = takeFault(request)
    if (fault?.type === 'hang') return 'hang'
    if (fault?.type === 'answer') return fault.reply
    const isReadOnly = authorization === `Bearer ${readOnlyToken}`
    if (authorization !== `Bearer ${token}` && !isReadOnly)
      return refusal(401, 'unauthorized', 'unable to authenticate')
    if (isReadOnly && request.method !== 'GET')
      return refusal(403, 'token_readonly', 'token is only allowed to perform GET requests')
    const reply = answerRequest(project, request)
    return fault?.type === 'lose' ? 'close' : reply
  }

  const server: HetznerServer = {
    apiUrl: '',
    token,
    readOnlyToken,
    project,
    requests,
    rateLimit,
    latencyMillis: 0,
    onStage: undefined,
    throttle: (millis, headers = {}) => {
      throttled = { until: Date.now() + millis, headers }
    },
    refuse: (times, code, { status = 422, message = code.replaceAll('_', ' '), ...target } = {}) =>
      void faults.push({ type: 'answer', times, reply: refusal(status, code, message), ...target }),
    reply: (times, reply, headers = {}) => void faults.push({ type: 'answer', times, reply: { ...reply, headers } }),
    fail: (times, target = {}) =>
      void faults.push({
        type: 'answer',
        times,
        reply: { status: 500, body: '<h1>Internal Server Error</h1>' },
        ...target,
      }),
    loseReplies: (times, target = {}) => void faults.push({ type: 'lose', times, ...target }),
    hang: (times, target = {}) => void faults.push({ type: 'hang', times, ...target }),
    close: async () => {
      const closed = new Promise((resolve) => http.close(resolve))
      http.closeAllConnections()
      await closed
    },
  }

  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk)
    const { pathname, searchParams: query } = new URL(incoming.url ?? '', 'http://hetzner')
    const path = pathname.replace(/^\/v1/, '')
    const body = Buffer.concat(chunks).toString('utf8')
    const request = { method: incoming.method ?? '', path, query, body, at: Date.now() }
    requests.push(request)
    if ((await server.onStage?.('received', request)) === 'drop') return void incoming.socket.destroy()
    const reply = await answer(request, incoming.headers.authorization)
    await server.onStage?.('performed', request)
    if (server.latencyMillis > 0) await sleep(server.latencyMillis)
    if (reply === 'hang') return
    if (reply === 'close') return void incoming.socket.destroy()
    const isJson = typeof reply.body !== 'string'
    response.writeHead(reply.status, {
      'content-type': isJson ? 'application/json' : 'text/html',
      ...rateHeaders(),
      ...reply.headers,
    })
    response.end(isJson ? JSON.stringify(reply.body) : reply.body, () => void server.onStage?.('sent', request))
  }
  // A request that is closed while its body is read ends here.
  const http = createServer(
    (incoming, response) => void handle(incoming, response).catch(() => incoming.socket.destroy()),
  )
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  return Object.assign(server, { apiUrl: `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1` })
}
