/** A fake control plane on a real HTTP server: records the reports of relays, and answers as a test configures. */
import { hash } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ReportedStreamFormat } from '../../domain/relay/stream-format.ts'
import type { IngestSummary } from '../../relay-node/ingest.ts'
import type { ReportedPathEvent } from '../../relay-node/path-events.ts'
import type { ReportedEvent } from '../../relay-node/stream-events.ts'

export interface Report {
  readonly secret: string | undefined
  readonly at: number
  /** Whether its relay has closed the connection before the answer. */
  readonly isGivenUp: () => boolean
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
    readonly is_extra?: boolean
    readonly events?: readonly ReportedEvent[]
    readonly path_events?: readonly ReportedPathEvent[]
    readonly stream_format?: ReportedStreamFormat
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
  let isHolding = false
  let whenReported: (report: Report['body']) => Promise<void> = async () => {}
  const slates = new Map<string, Buffer>()
  const changes = new EventEmitter()
  /** Holds the reply to an unbound relay, as long as it asks for, until there is an assignment or another answer. */
  const answerUnbound = async (waitSeconds: number): Promise<Answer> => {
    if (assignment === null && isRun(answer)) {
      const signal = AbortSignal.timeout(Math.min(waitSeconds * 1000, holdMillisMax))
      await once(changes, 'change', { signal }).catch(() => {})
    }
    return isRun(answer) ? unbound(assignment) : answer
  }
  /** Holds the reply to a relay with a session, as long as it asks for, until there is another answer. */
  const answerBound = async (waitSeconds: number): Promise<Answer> => {
    if (isHolding && waitSeconds > 0)
      await once(changes, 'change', { signal: AbortSignal.timeout(waitSeconds * 1000) }).catch(() => {})
    return answer
  }
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const slate = slates.get(request.url?.split('/api/v1/relay/slate/')[1] ?? '')
    if (request.method === 'GET' && slate !== undefined) {
      response.writeHead(200, { 'content-type': 'image/jpeg' }).end(slate)
      return
    }
    if (request.method !== 'POST' || request.url !== '/api/v1/relay/health') {
      response.writeHead(404).end()
      return
    }
    const secret = request.headers['x-relay-auth']
    const report = JSON.parse(text) as Report['body']
    const isGivenUp = () => response.destroyed && !response.writableEnded
    reports.push({ secret: secret?.toString(), at: performance.now(), body: report, isGivenUp })
    await whenReported(report)
    const answerTo = report.session_id === null ? answerUnbound : answerBound
    const { status, body } = await answerTo(report.wait_seconds ?? 0)
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
    /** Serves a JPEG to relays. @returns its digest. */
    addSlate(image: Buffer): string {
      const digest = hash('sha256', image, 'hex')
      slates.set(digest, image)
      return digest
    },
    /** From now on the replies to relays with a session are held, too. */
    holdsBound() {
      isHolding = true
    },
    /** What it does with each report from now on before it answers. */
    onReport(act: typeof whenReported) {
      whenReported = act
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
