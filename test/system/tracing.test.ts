/** Api and worker as processes that send their traces to a collector. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { Client, createDatabase, type GivenUser, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram } from '../support/programs.ts'
import { eventually, type OneSession, operator, operatorPassword } from '../support/relays.ts'
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/trace-collector.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'

/** Both programs start, and the worker builds its workflow bundle. */
const startSecondsMax = 90

let collector: TraceCollector
let client: Client
let user: GivenUser
let started: OneSession['session']
let spans: readonly CollectedSpan[]

/** Starts a relay with a trace of the caller, and collects the trace until the relay is active. */
beforeAll(
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'relay-tracing-'))
    const database = await createDatabase()
    atEnd(async () => {
      await endLocalRelays(dataDir)
      await database.drop()
      rmSync(dataDir, { recursive: true, force: true })
    })
    collector = await startTraceCollector()
    const env = testEnvironment({
      PORT: String(await findFreePort()),
      DATABASE_URL: database.url,
      SVC_DATA_DIR: dataDir,
      SVC_OPERATOR_PASSWORD: operatorPassword,
      SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '200',
    })
    startProgram('api', env)
    startProgram('worker', env)
    client = new Client(`http://127.0.0.1:${env.PORT}`)
    await eventually(
      () => fetch(`${client.url}/health`).catch(() => undefined),
      (answer) => answer?.ok === true,
      startSecondsMax,
    )
    user = await signUp(client)
    await client.post(`/admin/users/${user.userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
    const headers = { 'Idempotency-Key': randomUUID(), traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    started = (await client.post<OneSession>('/relay/start', {}, { bearer: user.bearer, headers })).body.session
    spans = await eventually(
      () => collector.spans.filter((span) => span.traceId === traceId),
      // Spans of the workflow arrive with the end of its task, after those of an activity that ran in it.
      (found) => found.some(({ name }) => name.startsWith('StartActivity:')) && found.some(isSqlOfWorker(found)),
      startSecondsMax,
    )
  },
  4 * startSecondsMax * 1000,
)

const find = (isWanted: (span: CollectedSpan) => boolean) => spans.find(isWanted)

const isSqlOfWorker =
  (all: readonly CollectedSpan[]) =>
  ({ name, parentSpanId }: CollectedSpan) =>
    name === 'SQL' && all.some((parent) => parent.spanId === parentSpanId && parent.name.startsWith('RunActivity:'))

test('one trace leads from the start of a relay through its workflow to an activity and its SQL', () => {
  const request = find(({ name }) => name === 'POST /api/v1/relay/start')
  expect(request).toMatchObject({ service: 'relay-control-plane-api', parentSpanId: 'b7ad6b7169203331' })
  expect(request?.attributes['http.response.status_code']).toBe('201')
  expect(find(({ name }) => name.startsWith('StartWorkflow:'))?.service).toBe('relay-control-plane-api')
  expect(find(({ name }) => name.startsWith('StartActivity:'))?.service).toBe('relay-control-plane-worker')
  expect(find(isSqlOfWorker(spans))?.attributes['db.query.text']).toMatch(/\$1/)
})

test('the statements of a request are children of its span', () => {
  const request = find(({ name }) => name === 'POST /api/v1/relay/start')
  expect(find(({ name, parentSpanId }) => name === 'SQL' && parentSpanId === request?.spanId)).toBeDefined()
})

test('spans contain no tokens, addresses, passwords and messages', () => {
  const all = collector.bodies.join('\n')
  const values = [
    user.email,
    user.password,
    user.bearer,
    user.refreshToken,
    started.pair_token ?? undefined,
    operatorPassword,
  ]
  expect(values.filter((value) => value === undefined || all.includes(value))).toEqual([])
  expect(all).not.toMatch(/exception\.message|"stack/)
})

test('a request whose traceparent is invalid begins a trace of its own', async () => {
  const invalid = '00-00000000000000000000000000000000-b7ad6b7169203331-01'
  const before = collector.spans.length
  await fetch(`${client.url}/livez`, { headers: { traceparent: invalid } })
  const span = await eventually(
    () => collector.spans.slice(before).find(({ name }) => name === 'GET /livez'),
    (found) => found !== undefined,
  )
  expect(span?.traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/)
  expect(span?.parentSpanId).toBeUndefined()
})
