/**
 * Stands between a client of EC2 and moto, and causes failures. It adds what moto lacks, as EC2 documents it: a launch
 * with a client token that was used before answers as the first one did, and an address that a network interface gets
 * takes the place of the one that it had.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Fault =
  /** The request is executed, and the connection closed without a reply. */
  | { readonly type: 'lose_reply' }
  /** The request is executed, and the reply never sent. */
  | { readonly type: 'hold_reply' }
  /** The request is not executed. */
  | { readonly type: 'refuse'; readonly status: number; readonly code: string; readonly retryAfter?: number }
  /** The request is not executed, and the reply is not XML. */
  | { readonly type: 'break' }
  /** The request is executed, and its reply changed. */
  | { readonly type: 'change'; readonly change: (body: string) => string }

interface Reply {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Ec2Request {
  readonly action: string
  readonly parameters: URLSearchParams
}

export interface Ec2Proxy {
  readonly url: string
  /** All requests so far, of which `moto` has executed those without a fault that prevents it. */
  readonly requests: readonly Ec2Request[]
  /** Applies a fault to the next requests of an action. */
  fail(action: string, fault: Fault, times?: number): void
  /** Ends all faults. */
  recover(): void
  close(): Promise<void>
}

export const errorBody = (code: string, message: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error><Code>${code}</Code><Message>${message}</Message></Error></Errors><RequestID>0c5f7a2e</RequestID></Response>`

export async function startEc2Proxy(motoUrl: string): Promise<Ec2Proxy> {
  const requests: Ec2Request[] = []
  let faults: { action: string; fault: Fault; times: number }[] = []
  const forwardTo = (request: IncomingMessage, text: string) => forward(motoUrl, request, text)
  const execute = withClientTokens(withOneAddress(forwardTo))

  const server = createServer(async (request, response) => {
    const text = await readText(request)
    const parameters = new URLSearchParams(text)
    const action = parameters.get('Action') ?? ''
    requests.push({ action, parameters })
    const next = faults.find((candidate) => candidate.action === action && candidate.times > 0)
    if (next) next.times -= 1
    // Without moto, as at the end of the tests, the client sees a closed connection too.
    const reply = await replyTo(next?.fault, () => execute(request, text, parameters)).catch(() => 'close' as const)
    if (reply === 'close') request.socket.destroy()
    else if (reply !== 'hold') send(response, reply)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    fail: (action, fault, times = 1) => void faults.push({ action, fault, times }),
    recover: () => {
      faults = []
    },
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

async function replyTo(fault: Fault | undefined, execute: () => Promise<Reply>): Promise<Reply | 'close' | 'hold'> {
  if (fault?.type === 'refuse') {
    const headers = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
    return { status: fault.status, body: errorBody(fault.code, 'refused by the test'), headers }
  }
  if (fault?.type === 'break') return { status: 500, body: '<html>Bad gateway</html' }
  const reply = await execute()
  if (fault?.type === 'change') return { ...reply, body: fault.change(reply.body) }
  if (fault?.type === 'lose_reply') return 'close'
  return fault?.type === 'hold_reply' ? 'hold' : reply
}

type Execute = (request: IncomingMessage, text: string, parameters: URLSearchParams) => Promise<Reply>

/** Concurrent launches with one token wait for the first one. Only successful launches are remembered. */
function withClientTokens(execute: Execute): Execute {
  const launches = new Map<string, { text: string; reply: Promise<Reply> }>()
  const terminated = new Set<string>()
  return async (request, text, parameters) => {
    const token = parameters.get('ClientToken')
    if (parameters.get('Action') === 'TerminateInstances') terminated.add(parameters.get('InstanceId.1') ?? '')
    if (parameters.get('Action') !== 'RunInstances' || !token || parameters.get('DryRun') === 'true')
      return execute(request, text, parameters)
    const earlier = launches.get(token)
    if (!earlier) {
      const reply = execute(request, text, parameters)
      launches.set(token, { text, reply })
      const { status } = await reply.catch(() => ({ status: undefined }))
      if (status !== 200) launches.delete(token)
      return reply
    }
    const reply = await earlier.reply
    const [, id = ''] = /<instanceId>(i-\w+)/.exec(reply.body) ?? []
    if (terminated.has(id)) return { status: 400, body: errorBody('IdempotentInstanceTerminated', 'use another token') }
    if (earlier.text !== text) return { status: 400, body: errorBody('IdempotentParameterMismatch', 'other arguments') }
    return reply
  }
}

/** A network interface has at most one address. */
function withOneAddress(execute: (request: IncomingMessage, text: string) => Promise<Reply>): Execute {
  const associations = new Map<string, { address: string; id: string }>()
  return async (request, text, parameters) => {
    const networkInterface = parameters.get('NetworkInterfaceId')
    if (parameters.get('Action') !== 'AssociateAddress' || networkInterface === null) return execute(request, text)
    const address = parameters.get('AllocationId') ?? ''
    const earlier = associations.get(networkInterface)
    if (earlier && earlier.address !== address)
      await execute(request, `Action=DisassociateAddress&Version=2016-11-15&AssociationId=${earlier.id}`)
    const reply = await execute(request, text)
    const [, id] = /<associationId>([\w-]+)/.exec(reply.body) ?? []
    if (id) associations.set(networkInterface, { address, id })
    return reply
  }
}

async function forward(motoUrl: string, { headers }: IncomingMessage, body: string): Promise<Reply> {
  const kept = ['authorization', 'content-type', 'x-amz-date'].flatMap((name) => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value] as const] : []
  })
  const reply = await fetch(motoUrl, { method: 'POST', headers: Object.fromEntries(kept), body })
  return { status: reply.status, body: await reply.text() }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

const send = (response: ServerResponse, { status, body, headers }: Reply): void =>
  void response.writeHead(status, { 'content-type': 'text/xml', ...headers }).end(body)
