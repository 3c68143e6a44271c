/** A fleet of the double of Hetzner Cloud whose worker is killed at each boundary of its work. */
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { startMachines } from '../support/hetzner-machines.ts'
import { type HetznerServer, startHetznerServer } from '../support/hetzner-server.ts'
import { eventually, startService, type TestService } from '../support/relays.ts'

const region = 'eu'
export const walkMillisMax = 1_500_000
/** How long a session may take after a kill: a process starts, and the timeouts of the killed one pass. */
export const takeoverSecondsMax = 90

export interface Fleet {
  readonly service: TestService
  readonly cloud: HetznerServer
  /** The variables of a worker process. */
  readonly variables: Readonly<Record<string, string>>
}

/** Starts the api in this process, with simulated relays. */
export async function startFleet(warm: number, more: Readonly<Record<string, string>> = {}): Promise<Fleet> {
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
    ...more,
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
export async function untilEnded({ service }: Fleet, sessionId: string): Promise<void> {
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

export const listTransitions = async ({ service }: Fleet, sessionId: string) =>
  (await service.history(sessionId)).transitions.map(({ to, reason }) => `${to}: ${reason}`)

/** The servers that exist for instances of the session. */
export async function serversOf({ service, cloud }: Fleet, sessionId: string): Promise<string[]> {
  const rows = await service.api.sql<{ instanceId: string }[]>`
    select instance_id from instances where session_id = ${sessionId}`
  const instanceIds = rows.map(({ instanceId }) => instanceId)
  return cloud.project
    .servers()
    .map(({ name }) => name)
    .filter((name) => instanceIds.includes(name))
}

export const boundariesOfCreation = [
  'session stored',
  'instance reserved',
  'POST /servers received',
  'POST /servers performed',
  'POST /servers sent',
  'GET /servers/:id received',
  'launch recorded',
  'instance bound',
]
export const boundariesOfDestruction = [
  'GET /servers of the session received',
  'DELETE /servers/:id received',
  'DELETE /servers/:id performed',
  'DELETE /servers/:id sent',
  'GET /servers/:id after the deletion received',
  'instance gone',
]
/** The first of the two transitions of an immediate stop is notified first. */
export const boundariesOfSession = [
  ...boundariesOfCreation,
  'transition to active',
  'transition to grace',
  ...boundariesOfDestruction,
]
