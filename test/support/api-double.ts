/** Stands in for the api where a test must see what the site asks of it, or have it answer what the real one never would. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'

export interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface DoubleAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  readonly body?: object | string | Uint8Array
}

export interface ApiDouble {
  readonly url: string
  /** All that was asked so far. */
  readonly asked: Asked[]
  /** From now on. One that never resolves leaves the site waiting. */
  answers(answer: (asked: Asked) => DoubleAnswer | Promise<DoubleAnswer>): void
  /** Nobody listens there any more. */
  leave(): Promise<void>
}

export async function startApiDouble(): Promise<ApiDouble> {
  let answer: (asked: Asked) => DoubleAnswer | Promise<DoubleAnswer> = () => ({ body: {} })
  const asked: Asked[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
    const { method = '', url = '', headers } = request
    const one = { method, url, headers, body: Buffer.concat(chunks).toString('utf8') }
    asked.push(one)
    const { status = 200, headers: given = {}, body } = await answer(one)
    for (const [name, value] of Object.entries(given)) response.setHeader(name, value as string | string[])
    const isJson = typeof body === 'object' && !(body instanceof Uint8Array)
    if (isJson) response.setHeader('content-type', 'application/json; charset=utf-8')
    response.writeHead(status).end(isJson ? JSON.stringify(body) : body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => close(server))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answers: (next) => {
      answer = next
    },
    leave: () => close(server),
  }
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
