/** How reports wait for an assignment: lost NOTIFYs, outages, limits, and the end of connections and processes. */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { createAssignments } from '../../../api/live/assignments.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { createLog } from '../../../platform/log.ts'
import { Client, startApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { testEnvironment } from '../../support/environment.ts'
import { findFreePort } from '../../support/ports.ts'
import { startProgram } from '../../support/programs.ts'
import { eventually, passageTo } from '../../support/relays.ts'
import { assignInstance, insertWarmInstance, reportUnbound, untilReported } from '../../support/unbound-relays.ts'

const master = randomBytes(48).toString('base64')
const shared = { SVC_RELAY_AUTH_SECRET: master, OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64') }
/** It has two connections for requests, and one more for what Postgres sends. */
const connectionsMax = 2
const api = await startApi({
  ...shared,
  SVC_DATABASE_POOL: String(connectionsMax),
  // A report waits a third of it at most.
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '90',
})
/** Not the pool of the API, whose connections are counted. */
const sql = connectPostgres(api.services.config.database.url, 1)
atEnd(() => sql.end({ timeout: 5 }))

const report = (at: Client, instanceId: string, waitSeconds: number) =>
  reportUnbound(at, master, { instance_id: instanceId, wait_seconds: waitSeconds })

async function insertSession(): Promise<string> {
  const { userId } = await api.given.user()
  const [row] = await sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, pair_token_sealed, pair_token_hash,
      relay_ws_token_sealed, relay_ws_token_hash)
    values (${userId}, ${randomUUID()}, 'local', 'user', 'sealed', ${randomBytes(32)}, 'sealed', ${randomBytes(32)})
    returning id`
  return row?.id ?? ''
}

/** Starts a report that waits, and the session that its instance is to get. */
async function waitingReport(at: Client = api) {
  const [instanceId, sessionId] = [await insertWarmInstance(sql), await insertSession()]
  const answer = report(at, instanceId, 25)
  await untilReported(sql, instanceId)
  return { instanceId, sessionId, answer }
}

const listListeners = () => sql<{ pid: number }[]>`
  select pid from pg_stat_activity where datname = current_database() and query ilike 'listen%'`
const readMetrics = async (at: { readonly url: string }) => (await fetch(`${at.url}/metrics`)).text()

test('five hundred waiting reports hold no connection of Postgres, and each gets its own session', async () => {
  const count = 500
  const [first = '', second = ''] = [await insertWarmInstance(sql), await insertWarmInstance(sql)]
  const others = await Promise.all(Array.from({ length: count - 2 }, () => insertWarmInstance(sql)))
  const [sessionId, otherSessionId] = [await insertSession(), await insertSession()]
  const answers = [first, second, ...others].map((id) => report(api, id, 30))
  await untilReported(sql, first, second, ...others)
  const [backends] = await sql`
    select count(*)::int as count from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()`
  expect(backends?.count).toBeLessThanOrEqual(connectionsMax + 1)
  await eventually(
    () => readMetrics(api),
    (metrics) => metrics.includes(`\nsvc_relay_reports_waiting ${count}\n`),
  )
  expect((await api.get('/capacity/status')).status).toBe(200)
  await assignInstance(sql, first, sessionId)
  await assignInstance(sql, second, otherSessionId)
  const [earlier, later] = await Promise.all(answers.slice(0, 2))
  expect([earlier?.body.assignment?.session_id, later?.body.assignment?.session_id]).toEqual([
    sessionId,
    otherSessionId,
  ])
  await sql`update instances set retired_at = now() where session_id is null`
  const rest = await Promise.all(answers.slice(2))
  expect(rest.filter(({ status, body }) => status !== 200 || body.desired !== 'stop')).toEqual([])
})

describe('a waiting report gets its assignment', () => {
  // A report that is answered at the end of its wait gets none.
  test('when the NOTIFY is lost', async () => {
    const { instanceId, sessionId, answer } = await waitingReport()
    await sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`
      await assignInstance(tx, instanceId, sessionId)
    })
    expect((await answer).body.assignment?.session_id).toBe(sessionId)
  })

  test('when the connection for NOTIFY was ended, which is opened again', async () => {
    const { instanceId, sessionId, answer } = await waitingReport()
    const [listener, ...others] = await listListeners()
    expect(others).toEqual([])
    await sql`select pg_terminate_backend(${listener?.pid ?? 0})`
    await assignInstance(sql, instanceId, sessionId)
    expect((await answer).body.assignment?.session_id).toBe(sessionId)
    const opened = await eventually(listListeners, (found) => found.length === 1)
    expect(opened).not.toEqual([listener])
  })

  test('after an outage of Postgres, during which it keeps waiting', async () => {
    const passage = await passageTo(api.services.config.database.url)
    const other = await startApi({ ...shared, DATABASE_URL: passage.url })
    const refusedId = await insertWarmInstance(sql)
    const { instanceId, sessionId, answer } = await waitingReport(other)
    await passage.block()
    await assignInstance(sql, instanceId, sessionId)
    expect((await report(other, refusedId, 0)).status).toBe(503)
    await passage.open()
    expect((await answer).body.assignment?.session_id).toBe(sessionId)
  })
})

describe('a report stops waiting', () => {
  test('when its relay disconnects', async () => {
    // It counts the reports of this test only.
    const other = await startApi({ ...shared, DATABASE_URL: api.services.config.database.url })
    const instanceId = await insertWarmInstance(sql)
    const countReports = async () => {
      const metrics = await readMetrics(other)
      const counts = metrics.matchAll(/^svc_http_requests_total\{.*route="\/api\/v1\/relay\/health".*} (\d+)$/gm)
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
    }
    const before = await countReports()
    const leaving = new AbortController()
    const answer = fetch(`${other.url}/api/v1/relay/health`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Relay-Auth': master },
      body: JSON.stringify({ session_id: null, instance_id: instanceId, wait_seconds: 30 }),
      signal: leaving.signal,
    })
    await untilReported(sql, instanceId)
    expect([before, await countReports()]).toEqual([0, 0])
    leaving.abort()
    await expect(answer).rejects.toThrow()
    await eventually(countReports, (count) => count === 1)
  })

  test('when the process stops, and its relay should report to another one at once', async () => {
    const port = await findFreePort()
    const program = startProgram(
      'api',
      testEnvironment({ ...shared, PORT: String(port), DATABASE_URL: api.services.config.database.url }),
    )
    const client = new Client(`http://127.0.0.1:${port}`)
    await eventually(
      () => client.get('/capacity/status').catch(() => undefined),
      (answer) => answer?.status === 200,
    )
    const waiting = await Promise.all([waitingReport(client), waitingReport(client)])
    // Reports of another process, which goes on, wait as long.
    const elsewhere = await waitingReport()
    let isAnswered = false
    const answered = elsewhere.answer.then(() => {
      isAnswered = true
    })
    await program.stop()
    for (const { answer } of waiting)
      expect([(await answer).status, (await answer).body]).toEqual([
        200,
        { state: null, desired: 'run', report_in_seconds: 0.2, assignment: null },
      ])
    expect(isAnswered).toBe(false)
    await sql`update instances set retired_at = now() where instance_id = ${elsewhere.instanceId}`
    await answered
  })
})

test('more reports than may wait in one process are answered at once, and others may wait when they have ended', async () => {
  const assignments = createAssignments({ sql, log: createLog('test', 'fatal'), waitingMax: 2 })
  atEnd(() => assignments.stop())
  const socket = await openSocket()
  const ids = await Promise.all([1, 2, 3].map(() => insertWarmInstance(sql)))
  const [first, second, third] = ids.map((instanceId) => assignments.report({ instanceId, waitSeconds: 1, socket }))
  expect(await third).toMatchObject({ end: 'not_waited', waitedSeconds: 0 })
  expect([await first, await second]).toMatchObject([{ end: 'waited' }, { end: 'waited' }])
  const later = ids.slice(0, 2).map((instanceId) => assignments.report({ instanceId, waitSeconds: 20, socket }))
  await Promise.all(ids.slice(0, 2).map((id) => assignments.report({ instanceId: id, waitSeconds: 0, socket })))
  expect(await Promise.all(later)).toMatchObject([{ end: 'not_waited' }, { end: 'not_waited' }])
  expect(socket.listenerCount('close')).toBe(0)
})

test('a waiting report gets its assignment by the NOTIFY, without reading periodically', async () => {
  const assignments = createAssignments({ sql, log: createLog('test', 'fatal'), rereadSeconds: 3600 })
  atEnd(() => assignments.stop())
  const socket = await openSocket()
  const [instanceId, sessionId] = [await insertWarmInstance(sql), await insertSession()]
  const outcome = assignments.report({ instanceId, waitSeconds: 3600, socket })
  await untilReported(sql, instanceId)
  await assignInstance(sql, instanceId, sessionId)
  expect(await outcome).toMatchObject({ end: 'answered', instance: { sessionId } })
})

/** A connection as the API has one for each relay. */
async function openSocket(): Promise<Socket> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const socket = connect(typeof address === 'object' && address ? address.port : 0, '127.0.0.1')
  await once(socket, 'connect')
  socket.removeAllListeners('close')
  atEnd(() => {
    socket.destroy()
    server.close()
  })
  return socket
}
