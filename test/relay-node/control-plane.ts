/** A fake control plane on a real HTTP server: records the reports of relays, and answers as a test configures. */
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { IngestSummary } from '../../relay-node/ingest.ts'

export interface Report {
  readonly secret: string | undefined
  readonly at: number
  readonly body: {
    readonly session_id: string | null
    readonly instance_id: string
    /** Sent by unbound relays only. */
    readonly wait_seconds?: number
    readonly binding?: number
    readonly ports?: object
    readonly epoch?: string
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
const isRun = ({ body }: Answer) => (body as { desired?: string } | null)?.desired === 'run'
export const stop: Answer = { status: 200, body: { state: 'grace', desired: 'stop', report_in_seconds: 10 } }
export const refusal = (status: number, code: string): Answer => ({
  status,
  body: { error: { code, message: 'A sentence.' } },
})

/** The reply to an unbound relay. */
const unbound = (assignment: Assignment | null): Answer => ({
  status: 200,
  body: { state: null, desired: 'run', report_in_seconds: 0, assignment },
})

interface Assignment {
  readonly session_id: string
  readonly stream_token: string
  readonly binding?: number
  readonly ports?: object
}

export type ControlPlane = Awaited<ReturnType<typeof startControlPlane>>

/** @param port that of a closed one, to bring it back; 0 for any free port. */
export async function startControlPlane(port = 0) {
  const reports: Report[] = []
  let answer = run()
  let assignment: Assignment | null = null
  let holdMillisMax = Number.POSITIVE_INFINITY
  const changes = new EventEmitter()
  /** Holds the reply to an unbound relay, as long as it asks for, until there is an assignment or another answer. */
  const answerUnbound = async (waitSeconds: number): Promise<Answer> => {
    if (assignment === null && isRun(answer)) {
      const signal = AbortSignal.timeout(Math.min(waitSeconds * 1000, holdMillisMax))
      await once(changes, 'change', { signal }).catch(() => {})
    }
    return isRun(answer) ? unbound(assignment) : answer
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST' || request.url !== '/api/v1/relay/health') {
      response.writeHead(404).end()
      return
    }
    const secret = request.headers['x-relay-auth']
    const report = JSON.parse(text) as Report['body']
    reports.push({ secret: secret?.toString(), at: performance.now(), body: report })
    const { status, body } = report.session_id === null ? await answerUnbound(report.wait_seconds ?? 0) : answer
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    port: (server.address() as AddressInfo).port,
    reports,
    from: (sessionId: string) => reports.filter((report) => report.body.session_id === sessionId),
    /** Also answers held reports. */
    answers(next: Answer) {
      answer = next
      changes.emit('change')
    },
    /** Assigns a session to unbound relays. */
    assigns(next: Assignment) {
      assignment = next
      changes.emit('change')
    },
    /** Limits how long it holds replies. */
    holdsFor(millisMax: number) {
      holdMillisMax = millisMax
    },
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
