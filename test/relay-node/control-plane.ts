/** A fake control plane on a real HTTP server: records the reports of relays, and answers as a test configures. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { IngestSummary } from '../../relay-node/ingest.ts'

export interface Report {
  readonly secret: string | undefined
  readonly at: number
  readonly body: {
    readonly session_id: string
    readonly instance_id: string
    readonly observed_at: string
    readonly stats: IngestSummary
  }
}

export interface Answer {
  readonly status: number
  readonly body: unknown
}

export const run = (reportInSeconds = 0.1): Answer => ({
  status: 200,
  body: { state: 'active', desired: 'run', report_in_seconds: reportInSeconds },
})
export const stop: Answer = { status: 200, body: { state: 'grace', desired: 'stop', report_in_seconds: 10 } }
export const refusal = (status: number, code: string): Answer => ({
  status,
  body: { error: { code, message: 'A sentence.' } },
})

export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>

/** @param port that of a closed one, to bring it back; 0 for any free port. */
export async function startControlPlane(port = 0) {
  const reports: Report[] = []
  let answer = run()
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST' || request.url !== '/api/v1/relay/health') {
      response.writeHead(404).end()
      return
    }
    const secret = request.headers['x-relay-auth']
    reports.push({ secret: secret?.toString(), at: performance.now(), body: JSON.parse(text) })
    const { status, body } = answer
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    port: (server.address() as AddressInfo).port,
    reports,
    from: (sessionId: string) => reports.filter((report) => report.body.session_id === sessionId),
    answers(next: Answer) {
      answer = next
    },
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
