/**
 * A worker process is killed at each boundary of provisioning, assignment and teardown, and another one takes over. The
 * relays are servers of the double of Hetzner Cloud.
 */
import { describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { recordSuspicions } from '../../db/relay/health.ts'
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { atEnd } from '../support/at-end.ts'
import { watchBoundaries } from '../support/crash-boundaries.ts'
import { testEnvironment } from '../support/environment.ts'
import { startMachines } from '../support/hetzner-machines.ts'
import { type HetznerServer, startHetznerServer } from '../support/hetzner-server.ts'
import { startProgram } from '../support/programs.ts'
import { eventually, startService, type TestService } from '../support/relays.ts'

const region = 'eu'
const walkMillisMax = 1_500_000
/** How long a session may take after a kill: a process starts, and the timeouts of the killed one pass. */
const takeoverSecondsMax = 90

interface Fleet {
  readonly service: TestService
  readonly cloud: HetznerServer
  /** The variables of a worker process. */
  readonly variables: Readonly<Record<string, string>>
}

/** Starts the api in this process, with simulated relays. */
async function startFleet(warm: number): Promise<Fleet> {
  const cloud = await startHetznerServer()
  atEnd(() => cloud.close())
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const { DATABASE_URL: _, ...secrets } = testEnvironment()
  const own = {
    ...secrets,
    SVC_REGIONS: JSON.stringify([{ region, display_name: 'Europe', provider: 'hetzner', warm, hetzner }]),
    SVC_HETZNER_TOKEN: cloud.token,
    SVC_HETZNER_API_URL: cloud.apiUrl,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '15',
    SVC_RELAY_GRACE_SECONDS: '30',
    SVC_RELAY_REPLACEMENT_SECONDS: '120',
  }
  const service = await startService({ variables: own, worker: false })
  const { config } = service.api.services
  const [masterSecret = ''] = config.relayAuthSecrets
  startMachines({ cloud, api: service.api, masterSecret })
  const variables = {
    ...own,
    DATABASE_URL: config.database.url,
    SVC_TEMPORAL_TASK_QUEUE: config.temporal.taskQueue,
    SVC_DATA_DIR: service.dataDir,
    SVC_API_URL: service.api.url,
    PORT: String(config.port),
  }
  return { service, cloud, variables }
}

/**
 * Resolves when the session is stopped, its workflow has ended, and no row says that one of its instances may exist.
 */
async function untilEnded({ service }: Fleet, sessionId: string): Promise<void> {
  const { sql, services } = service.api
  const workflow = services.temporal.workflow.getHandle(relaySessionWorkflowId(sessionId))
  await eventually(
    async () => ({
      session: (await service.history(sessionId)).session.state,
      workflow: (await workflow.describe()).status.name,
      instances: (await sql`select from instances where session_id = ${sessionId} and gone_at is null`).count,
    }),
    ({ session, workflow, instances }) => session === 'stopped' && workflow === 'COMPLETED' && instances === 0,
    takeoverSecondsMax,
  )
}

const listTransitions = async ({ service }: Fleet, sessionId: string) =>
  (await service.history(sessionId)).transitions.map(({ to, reason }) => `${to}: ${reason}`)

/** The servers that exist for instances of the session. */
async function serversOf({ service, cloud }: Fleet, sessionId: string): Promise<string[]> {
  const rows = await service.api.sql<{ instanceId: string }[]>`
    select instance_id from instances where session_id = ${sessionId}`
  const instanceIds = rows.map(({ instanceId }) => instanceId)
  return cloud.project
    .servers()
    .map(({ name }) => name)
    .filter((name) => instanceIds.includes(name))
}

/** What must be true once a session has ended. */
async function expectClean(fleet: Fleet, sessionId: string, transitions: readonly string[]): Promise<void> {
  const { service, cloud } = fleet
  await untilEnded(fleet, sessionId)
  expect(await serversOf(fleet, sessionId)).toEqual([])
  expect(await listTransitions(fleet, sessionId)).toEqual(transitions)
  expect(await service.api.sql`select from instances where session_id = ${sessionId}`).toHaveLength(1)
  expect(cloud.project.mostAtOnce('svc-session', sessionId)).toBeLessThanOrEqual(1)
  expect([...cloud.project.creations.values()].every((count) => count === 1)).toBe(true)
}

const untilState = ({ service }: Fleet, sessionId: string, isWanted: (session: SessionView) => boolean) =>
  eventually(async () => (await service.history(sessionId)).session as SessionView, isWanted, takeoverSecondsMax)

/** Starts a relay, turns the power of its server off, and stops the session once another one has taken over. */
async function loseAndReplace(fleet: Fleet): Promise<void> {
  const { service, cloud } = fleet
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  const { instance_id: lost } = await untilState(fleet, sessionId, ({ state }) => state === 'active')
  const server = cloud.project.servers().find(({ name }) => name === lost)
  if (server) server.isOff = true
  // The end of the connection of an open report, which these machines do not close.
  await recordSuspicions(service.api.sql, [{ id: sessionId, instanceId: lost ?? null, quietSeconds: 0 }])
  const { instance_id: found } = await untilState(
    fleet,
    sessionId,
    ({ state, instance_id }) => state === 'active' && instance_id !== lost,
  )
  expect(await serversOf(fleet, sessionId)).toContain(found)
  await user.stop({ session_id: sessionId, immediate: true })
  await untilEnded(fleet, sessionId)
  expect(await serversOf(fleet, sessionId)).toEqual([])
  expect(await listTransitions(fleet, sessionId)).toEqual([
    'active: relay_ready',
    'grace: health_lost',
    'active: health_restored',
    'grace: stop_requested',
    'stopped: stop_requested',
  ])
  expect(await service.api.sql`select from instances where session_id = ${sessionId}`).toHaveLength(2)
  expect(await service.api.sql`select from relay_replacements where session_id = ${sessionId}`).toHaveLength(1)
  expect(cloud.project.mostAtOnce('svc-session', sessionId)).toBeLessThanOrEqual(2)
  expect([...cloud.project.creations.values()].every((count) => count === 1)).toBe(true)
}

/** Starts a relay and stops it once it is active. */
async function startAndStop(fleet: Fleet): Promise<void> {
  const { service } = fleet
  const user = await service.user()
  const { session_id: sessionId } = (await user.start()).body.session
  await eventually(
    async () => (await service.history(sessionId)).session.state,
    (state) => state === 'active',
    takeoverSecondsMax,
  )
  expect(await serversOf(fleet, sessionId)).toHaveLength(1)
  await user.stop({ session_id: sessionId, immediate: true })
  await expectClean(fleet, sessionId, ['active: relay_ready', 'grace: stop_requested', 'stopped: stop_requested'])
}

/** Passes over the time in which the provider may not list what it created: the double lists it at once. */
const skipListLag = async ({ service }: Fleet, sessionId: string) =>
  service.api.sql`
    update instances set create_attempted_at = create_attempted_at - interval '61 seconds'
    where session_id = ${sessionId}`

/** Resolves when the region has one warm instance, which waits for a session, and no other instance. */
async function untilWarm({ service, cloud }: Fleet): Promise<void> {
  await eventually(
    async () => {
      const rows = await service.api.sql<{ instanceId: string; isReady: boolean }[]>`
        select instance_id, session_id is null and retired_at is null and launched_at is not null
          and last_report_at > now() - interval '7 seconds' as is_ready
        from instances where gone_at is null`
      return { rows, servers: cloud.project.servers().map(({ name }) => name) }
    },
    ({ rows: [warm, ...others], servers }) =>
      warm?.isReady === true && others.length === 0 && servers.join() === warm.instanceId,
    takeoverSecondsMax,
  )
}

const boundariesOfCreation = [
  'session stored',
  'instance reserved',
  'POST /servers received',
  'POST /servers performed',
  'POST /servers sent',
  'GET /servers/:id received',
  'launch recorded',
  'instance bound',
]
const boundariesOfDestruction = [
  'GET /servers of the session received',
  'DELETE /servers/:id received',
  'DELETE /servers/:id performed',
  'DELETE /servers/:id sent',
  'GET /servers/:id after the deletion received',
  'instance gone',
]
/** The first of the two transitions of an immediate stop is notified first. */
const boundariesOfSession = [
  ...boundariesOfCreation,
  'transition to active',
  'transition to grace',
  ...boundariesOfDestruction,
]

describe.concurrent('a worker that is killed at any boundary is replaced, and leaves one server or none', () => {
  test('while a relay starts on a new instance and is stopped', { timeout: walkMillisMax }, async () => {
    const fleet = await startFleet(0)
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
    const walked = await boundaries.walk(() => startAndStop(fleet))
    expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
    expect(fleet.cloud.project.servers()).toEqual([])
  })

  test('while a relay starts on a warm instance, which is replaced, and is stopped', {
    timeout: walkMillisMax,
  }, async () => {
    const fleet = await startFleet(1)
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
    await untilWarm(fleet)
    const walked = await boundaries.walk(async () => {
      await startAndStop(fleet)
      await untilWarm(fleet)
    })
    expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
  })

  test('while a relay is lost and replaced, and its session is stopped', { timeout: walkMillisMax }, async () => {
    const fleet = await startFleet(0)
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, fleet.cloud, fleet.service.api.sql)
    const walked = await boundaries.walk(() => loseAndReplace(fleet))
    expect(walked).toEqual(expect.arrayContaining(boundariesOfSession))
    expect(fleet.cloud.project.servers()).toEqual([])
  })

  test('while a relay is stopped during its creation, which the provider performs all the same', {
    timeout: walkMillisMax,
  }, async () => {
    const fleet = await startFleet(0)
    const { service, cloud } = fleet
    let stopDuringCreation = async () => {}
    const worker = startProgram('worker', fleet.variables)
    const boundaries = await watchBoundaries(worker, cloud, service.api.sql, async (stage, { method }) => {
      if (stage === 'received' && method === 'POST') await stopDuringCreation()
      return undefined
    })
    const walked = await boundaries.walk(async () => {
      const user = await service.user()
      let stopping: Promise<unknown> | undefined
      let isStopped = false
      stopDuringCreation = async () => {
        stopping ??= user.stop({ connection_id: 'default', immediate: true })
        await stopping
        isStopped = true
      }
      const { session_id: sessionId } = (await user.start()).body.session
      await eventually(() => isStopped, Boolean, takeoverSecondsMax)
      await skipListLag(fleet, sessionId)
      await expectClean(fleet, sessionId, ['stopped: stop_requested'])
    })
    // The cancellation of the call may come before its reply.
    const certain = boundariesOfCreation.slice(0, 4)
    expect(walked).toEqual(expect.arrayContaining([...certain, 'transition to stopped', ...boundariesOfDestruction]))
    expect(cloud.project.servers()).toEqual([])
  })
})
