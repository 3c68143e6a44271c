/** Webhooks in large numbers, repeated, and while Temporal is away or a process is killed. */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client as TemporalClient } from '@temporalio/client'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { readConfig } from '../../platform/config/config.ts'
import { connectTemporal } from '../../platform/temporal.ts'
import { Client, createDatabase, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { billingEvent, findEvent, type SandboxSender, sandboxSender } from '../support/billing.ts'
import { testEnvironment } from '../support/environment.ts'
import { findFreePort } from '../support/ports.ts'
import { type Program, startProgram, untilWell } from '../support/programs.ts'
import { eventually, operatorPassword, passageTo } from '../support/relays.ts'
import { untilAtRest } from '../support/workflows.ts'

const secret = `whsec_${randomBytes(32).toString('base64')}`

/** Two programs of the api on one database: the first speaks to it through the trap. */
let apis: readonly [Client, Client]
let providers: readonly [SandboxSender, SandboxSender]
let first: Program
let trap: Awaited<ReturnType<typeof trapTo>>
let wayToTemporal: Awaited<ReturnType<typeof passageTo>>
let temporal: TemporalClient
let sql: Database

beforeAll(async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'billing-storm-'))
  const database = await createDatabase()
  sql = connectPostgres(database.url, 3)
  atEnd(async () => {
    rmSync(dataDir, { recursive: true, force: true })
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  trap = await trapTo(database.url)
  wayToTemporal = await passageTo(`http://${inject('temporalAddress')}`)
  const env = testEnvironment({
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: new URL(wayToTemporal.url).host,
    SVC_DATA_DIR: dataDir,
    SVC_BILLING_WEBHOOK_SECRET: secret,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
  })
  const [firstPort, secondPort] = [await findFreePort(), await findFreePort()]
  first = startProgram('api', { ...env, PORT: String(firstPort), DATABASE_URL: trap.url })
  startProgram('api', { ...env, PORT: String(secondPort) })
  startProgram('worker', env)
  apis = [new Client(`http://127.0.0.1:${firstPort}`), new Client(`http://127.0.0.1:${secondPort}`)]
  providers = [sandboxSender(apis[0], secret), sandboxSender(apis[1], secret)]
  const { temporal: direct } = readConfig({ ...env, TEMPORAL_ADDRESS: inject('temporalAddress') })
  const connected = connectTemporal(direct)
  atEnd(connected.close)
  temporal = connected.client
  await Promise.all(apis.map((api) => untilWell(api.url)))
})

/** A proxy to Postgres. When the flag is set, the replies to commits are not forwarded. */
async function trapTo(url: string) {
  const target = new URL(url)
  let isSet = false
  const server = createServer((from) => {
    const to = connect(Number(target.port), target.hostname)
    let isSprung = false
    to.on('data', (chunk: Buffer) => {
      isSprung ||= isSet && chunk.includes('COMMIT\0')
      if (!isSprung) from.write(chunk)
    })
    from.on('data', (chunk: Buffer) => to.write(chunk))
    for (const [socket, opposite] of [
      [from, to],
      [to, from],
    ] as const)
      socket.on('error', () => {}).on('close', () => opposite.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => server.close())
  const through = new URL(url)
  through.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const put = (set: boolean) => () => {
    isSet = set
  }
  return { url: through.href, set: put(true), loosen: put(false) }
}

const untilApplied = (id: string) =>
  eventually(
    () => findEvent(apis[1], id),
    (event) => event?.status === 'applied',
  )

const plansOf = async (userId: string) =>
  (
    await sql<{ plan: string }[]>`
      select detail->>'plan_status' as plan from audit_entries where action = 'plan_changed' and user_id = ${userId} order by id`
  ).map((row) => row.plan)

/** As a provider, which sends again what a busy machine refuses for now. @returns the answer. */
async function sendUntilTaken(provider: SandboxSender, event: ReturnType<typeof billingEvent>, id: string) {
  for (;;) {
    const { status, body } = await provider.send(event, { id })
    if (status !== 503) return `${status} ${JSON.stringify(body)}`
    await sleep(100)
  }
}

/** An account with a plan, paid for a day ago. */
async function subscriber() {
  const { userId } = await signUp(apis[1])
  const subscription_id = `sub_${randomUUID()}`
  const id = randomUUID()
  await providers[1].send(
    billingEvent('subscription.activated', { user_id: userId, subscription_id }, Date.now() - 86_400_000),
    { id },
  )
  await untilApplied(id)
  return { userId, subscription_id }
}

const timerEvents = [
  'timerStartedEventAttributes',
  'timerCanceledEventAttributes',
  'timerFiredEventAttributes',
] as const

describe('an identical webhook', () => {
  test('sent a thousand times at once to two processes is accepted each time and has one effect', async () => {
    const { userId, subscription_id } = await subscriber()
    const failure = billingEvent('payment.failed', { user_id: userId, subscription_id, invoice_id: 'in_1' })
    const id = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 1000 }, (_, index) =>
        sendUntilTaken(index % 2 === 0 ? providers[0] : providers[1], failure, id),
      ),
    )
    expect([answers.length, [...new Set(answers)]]).toEqual([1000, ['200 {"received":true}']])
    await untilApplied(id)

    expect(await sql`select from billing_events where event_key = ${id}`).toHaveLength(1)
    expect(await plansOf(userId)).toEqual(['active', 'past_due'])
    const workflowId = `subscription/${userId}`
    const runs: string[] = []
    for await (const run of temporal.workflow.list({ query: `WorkflowId = '${workflowId}'` }))
      runs.push(run.status.name)
    expect(runs).toEqual(['RUNNING'])
    const handle = temporal.workflow.getHandle(workflowId)
    await untilAtRest(handle)
    const { events } = await handle.fetchHistory()
    const count = (name: (typeof timerEvents)[number]) => events?.filter((event) => event[name]).length ?? 0
    const [started = 0, ...ended] = timerEvents.map(count)
    expect(started - ended.reduce((sum, each) => sum + each, 0)).toBe(1)
  })
})

describe('while Temporal is unreachable', () => {
  test('webhooks are accepted quickly and applied once Temporal is back', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => signUp(apis[1])))
    await wayToTemporal.block()
    const began = Date.now()
    const sent = await Promise.all(
      users.map(async ({ userId }) => {
        const id = randomUUID()
        const { status } = await providers[1].send(billingEvent('subscription.activated', { user_id: userId }), { id })
        return { id, userId, status }
      }),
    )
    expect([sent.map((answer) => answer.status), Date.now() - began < 2000]).toEqual([users.map(() => 200), true])
    for (const { id } of sent) expect(await findEvent(apis[1], id)).toMatchObject({ status: 'pending' })
    await wayToTemporal.open()
    for (const { id, userId } of sent) {
      await untilApplied(id)
      expect(await plansOf(userId)).toEqual(['active'])
    }
  })
})

describe('a webhook', () => {
  // The last one: the program that it kills stays away.
  test('is accepted again and has one effect if the process is killed between commit and reply', async () => {
    const { userId, subscription_id } = await subscriber()
    const failure = billingEvent('payment.failed', { user_id: userId, subscription_id, invoice_id: 'in_1' })
    const id = randomUUID()
    trap.set()
    const unanswered = providers[0].send(failure, { id }).then(
      (answer) => answer.status,
      () => 'connection closed',
    )
    await eventually(
      () => sql`select from billing_events where event_key = ${id}`,
      (rows) => rows.length === 1,
    )
    await first.kill()
    trap.loosen()
    expect(await unanswered).toBe('connection closed')
    expect((await providers[1].send(failure, { id })).status).toBe(200)
    // The workflow was not woken: the process that stored the event is dead, and a repetition wakes nothing.
    await untilApplied(id)
    expect(await sql`select from billing_events where event_key = ${id}`).toHaveLength(1)
    expect(await plansOf(userId)).toEqual(['active', 'past_due'])
  })
})
