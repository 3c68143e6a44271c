/**
 * Every query of the dashboards and the rules runs on a Prometheus that has scraped the real service with live relays.
 */

import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, test } from 'vitest'
import { endLocalRelays } from '../../providers/relay/local-relays.ts'
import { Client, createDatabase, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { readDashboards } from '../support/dashboards.ts'
import { testEnvironment } from '../support/environment.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'
import { localhostCertificate, localhostKey } from '../support/localhost-certificate.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram, untilWell } from '../support/programs.ts'
import { startPrometheus } from '../support/prometheus.ts'
import { eventually, type OneSession, operator, operatorPassword, shortTimes } from '../support/relays.ts'
import { StreamSource } from './srt-stream.ts'

/** A server with the certificate of localhost, in the place of the site's proxy. */
async function startTlsServer(): Promise<string> {
  const server = createServer({ cert: localhostCertificate, key: localhostKey }).listen(0, 'localhost')
  server.on('tlsClientError', () => {})
  await new Promise((resolve) => server.once('listening', resolve))
  atEnd(async () => void server.close())
  return `https://localhost:${(server.address() as AddressInfo).port}`
}

const dataDir = await makeFolder()
const database = await createDatabase()
atEnd(async () => {
  await endLocalRelays(dataDir)
  await database.drop()
  await removeFolder(dataDir)
})
const [apiPort, workerPort] = [await findFreePort(), await findFreePort()]
const client = new Client(`http://127.0.0.1:${apiPort}`)
const environment = testEnvironment({
  ...shortTimes,
  PORT: String(apiPort),
  DATABASE_URL: database.url,
  SVC_SITE_URL: await startTlsServer(),
  SVC_DATA_DIR: dataDir,
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
  SVC_WORKER_METRICS_ADDRESS: `127.0.0.1:${workerPort}`,
  SVC_REGIONS: JSON.stringify([{ region: 'local', display_name: 'Local', provider: 'local', warm: 1 }]),
})
startProgram('api', environment)
startProgram('worker', environment)

const prometheus = await startPrometheus({
  'relay-control-plane-api': `127.0.0.1:${apiPort}`,
  'relay-control-plane-worker': `127.0.0.1:${workerPort}`,
})

/** A user with a plan. Starts a relay and resolves with it when it is active. */
async function startRelay() {
  const { userId, bearer } = await signUp(client)
  await client.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
  const headers = { 'Idempotency-Key': randomUUID() }
  await client.post('/relay/start', {}, { bearer, headers })
  const { body } = await eventually(
    () => client.get<OneSession>('/relay/active', { bearer }),
    (answer) => answer.body.session?.state === 'active',
  )
  return {
    session: body.session,
    stop: () => client.post('/relay/stop', { connection_id: 'default', immediate: true }, { bearer }),
  }
}

beforeAll(() => untilWell(client.url))

/** Metrics that have no series yet, with what they count. */
const missing = new Map([
  ['ALERTS', 'alerts that fire or are pending'],
  ['temporal_workflow_task_execution_failed_total', 'workflow tasks that fail'],
  ['temporal_workflow_failed_total', 'workflows that fail'],
  ['temporal_workflow_continue_as_new_total', 'workflows with a long history'],
  ['temporal_activity_execution_failed_total', 'activities that fail'],
  ['temporal_local_activity_execution_failed_total', 'local activities that fail'],
  ['temporal_request_failure_total', 'calls to Temporal that fail'],
  ['temporal_sticky_cache_miss_total', 'workflows that a worker replays'],
])

/** As Grafana sends it, without the default for missing series. */
const toQuery = (expression: string) =>
  expression
    .replaceAll('$__rate_interval', '1m')
    .replaceAll('$region', '.*')
    .replaceAll(/ or vector\(0\)/g, '')

test('every query of every dashboard returns a series from the real service', { timeout: 240_000 }, async () => {
  const ended = await startRelay()
  await ended.stop()
  const { session } = await startRelay()
  const source = new StreamSource(`${session.connect?.srt_url}&mode=caller&latency=200`, 3_000)

  const expressions = (await readDashboards()).flatMap(({ name, panels }) =>
    panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ panel: `${name}: ${title}`, expr }))),
  )
  expect(expressions.length).toBeGreaterThan(80)
  const required = expressions.filter(({ expr }) => ![...missing.keys()].some((name) => expr.includes(name)))
  const listEmpty = async () => {
    const answers = await Promise.all(
      required.map(async (expression) => ({ ...expression, ...(await prometheus.query(toQuery(expression.expr))) })),
    )
    return answers.filter(({ series }) => series.length === 0).map(({ panel, expr, error }) => ({ panel, expr, error }))
  }
  const empty = await eventually(listEmpty, (found) => found.length === 0, 120).catch(listEmpty)
  expect(empty, source.errors()).toEqual([])

  const optional = expressions.filter((expression) => !required.includes(expression))
  for (const { expr } of optional) expect((await prometheus.query(toQuery(expr))).error, expr).toBeNull()
})

test('every rule is evaluated without an error on the metrics of the real service', async () => {
  const rules = await eventually(
    () => prometheus.rules(),
    (found) => found.length > 0 && found.every(({ health }) => health !== 'unknown'),
  )
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([])
})

test('the SDK contains the metrics that have no series yet', async () => {
  const folder = fileURLToPath(new URL('../../node_modules/@temporalio/core-bridge/releases', import.meta.url))
  const libraries = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.node'))
  const code = await readFile(`${folder}/${libraries[0]}`)
  const names = [...missing.keys()].filter((name) => name.startsWith('temporal_'))
  const unknown = names.filter((name) => !code.includes(name.replace(/^temporal_|_total$/g, '')))
  expect(unknown).toEqual([])
})
