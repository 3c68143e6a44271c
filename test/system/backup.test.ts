/**
 * deploy/backup.sh and deploy/restore.sh with real relays and Temporal on Postgres. Postgres is stopped for good and
 * replaced by an empty server at the same address.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { appendFile, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Connection, Client as TemporalClient } from '@temporalio/client'
import { beforeAll, describe, expect, test } from 'vitest'
import { relaySessionWorkflowId, subscriptionSnapshot, subscriptionWorkflowId } from '../../workflows/messages.ts'
import { Client, type GivenUser, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { billingEvent, sandboxSender } from '../support/billing.ts'
import { eventually, type History, type OneSession, operator, relayProcesses } from '../support/relays.ts'
import { type ReplacedServers, startReplacedServers } from '../support/replaced-servers.ts'
import { paymentGraceMillis } from '../support/subscribers.ts'

const testMillisMax = 300_000
const secondsMax = 90

let servers: ReplacedServers
let api: Client
let temporal: TemporalClient
beforeAll(async () => {
  servers = await startReplacedServers({
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
    // A restore on a busy machine takes a while, and no session should end meanwhile.
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '120',
  })
  api = new Client(servers.environment.SVC_API_URL ?? '')
  const connection = Connection.lazy({ address: servers.environment.TEMPORAL_ADDRESS ?? '' })
  atEnd(() => connection.close())
  temporal = new TemporalClient({ connection })
}, testMillisMax)

interface Subscriber extends GivenUser {
  readonly subscriptionId: string
}

async function sendEvent(type: 'subscription.activated' | 'payment.failed', to: Subscriber, at: number): Promise<void> {
  const data = { user_id: to.userId, subscription_id: to.subscriptionId, invoice_id: randomUUID() }
  const sender = sandboxSender(api, servers.environment.SVC_BILLING_WEBHOOK_SECRET)
  expect((await sender.send(billingEvent(type, data, at))).status).toBe(200)
}

interface PlanRow {
  readonly planStatus: string
  readonly paymentGraceEndsAt: Date | null
}

const planOf = ({ userId }: GivenUser) =>
  servers.query(async (sql) => {
    const [row] = await sql<PlanRow[]>`select plan_status, payment_grace_ends_at from users where id = ${userId}`
    return row
  })

const waitForPlan = (user: GivenUser, planStatus: string) =>
  eventually(
    () => planOf(user),
    (plan) => plan?.planStatus === planStatus,
    secondsMax,
  )

async function newSubscriber(): Promise<Subscriber> {
  const subscriber = { ...(await signUp(api)), subscriptionId: `sub_${randomUUID()}` }
  await sendEvent('subscription.activated', subscriber, Date.now() - 60_000)
  await waitForPlan(subscriber, 'active')
  return subscriber
}

/** Fails a payment now. @returns the time at which the payment grace period ends. */
async function failPayment(subscriber: Subscriber): Promise<number> {
  const failedAt = Date.now()
  await sendEvent('payment.failed', subscriber, failedAt)
  await waitForPlan(subscriber, 'past_due')
  return failedAt + paymentGraceMillis
}

const historyOf = async (sessionId: string): Promise<History> =>
  (await api.get<History>(`/admin/sessions/${sessionId}`, { headers: operator })).body

const waitForState = (sessionId: string, state: string) =>
  eventually(
    () => historyOf(sessionId),
    ({ session }) => session?.state === state,
    secondsMax,
  )

/** Starts a relay and resolves with the id of its session once it is active. */
async function startRelay({ bearer }: GivenUser): Promise<string> {
  const headers = { 'Idempotency-Key': randomUUID() }
  const { session } = (await api.post<OneSession>('/relay/start', {}, { bearer, headers })).body
  await waitForState(session.session_id, 'active')
  return session.session_id
}

const stopRelay = ({ bearer }: GivenUser, sessionId: string) =>
  api.post('/relay/stop', { session_id: sessionId, immediate: true }, { bearer })

const relaysOf = (sessionId: string) => relayProcesses(servers.dataDir).filter((relay) => relay.sessionId === sessionId)

/** What a restore must not change. */
async function stateOf(sessionId: string) {
  const { session, transitions } = await historyOf(sessionId)
  return {
    state: session.state,
    instanceId: session.instance_id,
    transitions: transitions.map(({ from, to, reason }) => `${from} → ${to}: ${reason}`),
    relays: relaysOf(sessionId),
  }
}

const lastReportOf = (sessionId: string) =>
  servers.query(async (sql) => {
    const [row] = await sql<
      { at: Date }[]
    >`select last_report_at as at from relay_health where session_id = ${sessionId}`
    return row?.at.getTime() ?? 0
  })

/** Resolves when the api has stored another report of the relay. */
async function waitForReport(sessionId: string): Promise<void> {
  const before = await lastReportOf(sessionId)
  await eventually(
    () => lastReportOf(sessionId),
    (at) => at > before,
    secondsMax,
  )
}

/** Resolves when the workflow of the account has this end of the grace in its snapshot, like its row. */
async function expectGraceEnd(subscriber: Subscriber, endsAt: number): Promise<void> {
  expect(await planOf(subscriber)).toMatchObject({ planStatus: 'past_due', paymentGraceEndsAt: new Date(endsAt) })
  const handle = temporal.workflow.getHandle(subscriptionWorkflowId(subscriber.userId))
  await eventually(
    () => handle.query(subscriptionSnapshot).catch((error: Error) => error.message),
    (snapshot) => typeof snapshot === 'object' && snapshot?.graceEndsAt === endsAt,
    secondsMax,
  )
}

const waitForWorkflow = (sessionId: string, status: string) =>
  eventually(
    async () => {
      const handle = temporal.workflow.getHandle(relaySessionWorkflowId(sessionId))
      return handle.describe().then(
        (description) => description.status.name as string,
        (error: Error) => error.message,
      )
    },
    (found) => found === status,
    secondsMax,
  )

describe('a backup of the running service is restored into empty servers:', () => {
  test('live sessions continue on their relays, and a payment grace period ends at the same instant', {
    timeout: testMillisMax,
  }, async () => {
    const [paying, failing] = [await newSubscriber(), await newSubscriber()]
    const sessions = await Promise.all([startRelay(paying), startRelay(failing)])
    const graceEndsAt = await failPayment(failing)
    const before = await Promise.all(sessions.map(stateOf))
    expect(before.map(({ relays }) => relays.length)).toEqual([1, 1])

    const folder = servers.newFolder()
    await servers.run('backup.sh', folder)
    await servers.loseAndRestore(folder)

    for (const sessionId of sessions) await waitForReport(sessionId)
    expect(await Promise.all(sessions.map(stateOf))).toEqual(before)
    await expectGraceEnd(failing, graceEndsAt)
    for (const sessionId of sessions) await waitForWorkflow(sessionId, 'RUNNING')

    const [sessionId = ''] = sessions
    await stopRelay(paying, sessionId)
    await waitForState(sessionId, 'stopped')
    await waitForWorkflow(sessionId, 'COMPLETED')
    expect((await stateOf(sessionId)).transitions).toEqual([
      ...(before[0]?.transitions ?? []),
      'active → grace: stop_requested',
      'grace → stopped: stop_requested',
    ])
    expect(relaysOf(sessionId)).toEqual([])
  })

  test('a backup of Temporal that is older than that of the service loses no workflow', {
    timeout: testMillisMax,
  }, async () => {
    const [early, late] = [await newSubscriber(), await newSubscriber()]
    const [stopped, continued] = [await startRelay(early), await startRelay(await newSubscriber())]
    const older = servers.newFolder()
    await servers.run('backup.sh', older)
    const started = await startRelay(late)
    await stopRelay(early, stopped)
    await waitForState(stopped, 'stopped')
    const graceEndsAt = await failPayment(late)
    const before = await Promise.all([started, continued].map(stateOf))
    const mixed = servers.newFolder()
    await servers.run('backup.sh', mixed)
    for (const name of ['temporal', 'temporal_visibility'])
      await cp(join(older, `${name}.dump`), join(mixed, `${name}.dump`))
    await promisify(execFile)('sh', ['-c', 'sha256sum taken_at ./*.dump >SHA256SUMS'], { cwd: mixed })

    await servers.loseAndRestore(mixed)

    await waitForWorkflow(started, 'RUNNING')
    for (const sessionId of [started, continued]) await waitForReport(sessionId)
    expect(await Promise.all([started, continued].map(stateOf))).toEqual(before)
    await waitForWorkflow(stopped, 'COMPLETED')
    expect(await stateOf(stopped)).toMatchObject({ state: 'stopped', relays: [] })
    await expectGraceEnd(late, graceEndsAt)
    await stopRelay(late, started)
    await waitForState(started, 'stopped')
    await waitForWorkflow(started, 'COMPLETED')
    expect(relaysOf(started)).toEqual([])
  })
})

describe('the scripts refuse', () => {
  const refusal = (run: Promise<string>) =>
    run.then(
      () => 'none',
      ({ stderr }: { stderr: string }) => stderr.trim(),
    )

  test('to restore into a database that is not empty, and to replace a backup', async () => {
    const folder = servers.newFolder()
    await servers.run('backup.sh', folder)
    expect(await refusal(servers.run('restore.sh', folder))).toBe(
      'restore: the database temporal_visibility is not empty: drop it and create it again',
    )
    expect(await refusal(servers.run('backup.sh', folder))).toBe(`backup: ${folder} exists: name a new folder`)
  })

  test('a backup that was damaged', async () => {
    const folder = servers.newFolder()
    await servers.run('backup.sh', folder)
    await appendFile(join(folder, 'svc.dump'), 'x')
    expect(await refusal(servers.run('restore.sh', folder))).toContain(`restore: ${folder} was changed or damaged`)
  })
})
