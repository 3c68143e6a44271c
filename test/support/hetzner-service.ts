/**
 * The whole service with several regions, each with a double of Hetzner Cloud of its own, so that tests of faults run
 * at once.
 */
import { Writable } from 'node:stream'
import { expect } from 'vitest'
import { type RegionConfig, regions as regionsSchema } from '../../platform/config/regions.ts'
import { createLog } from '../../platform/log.ts'
import { createHetznerRelayProvider } from '../../providers/relay/hetzner.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import { relaySessionWorkflowId } from '../../workflows/messages.ts'
import { atEnd } from './at-end.ts'
import { startMachines } from './hetzner-machines.ts'
import { type HetznerServer, type ReceivedRequest, startHetznerServer } from './hetzner-server.ts'
import { eventually, type RelayUser, startService, type TestService } from './relays.ts'

export interface CloudRegion {
  readonly name: string
  readonly cloud: HetznerServer
  readonly service: TestService
  /** Starts a relay. */
  start(): Promise<{ user: RelayUser; sessionId: string }>
  /** Resolves with state, reason and detail once the session has the state. */
  untilState(sessionId: string, state: string, secondsMax?: number): Promise<string[]>
  /** Resolves when the session's clean-up is complete: no server and no row of an instance is left. */
  untilCleanedUp(sessionId: string, secondsMax?: number): Promise<void>
  /** Passes over the time in which the provider may not list what it created. */
  skipListLag(sessionId: string): Promise<void>
  /** The times of the requests with this method, in milliseconds since the first one. */
  timesOf(method: string): number[]
}

interface Options {
  readonly names: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  readonly requestMillisMax: number
  /** Of each region. */
  readonly settings?: Readonly<Record<string, unknown>>
  /** Changes the provider of a region. */
  readonly around?: (provider: RelayProvider, region: string) => RelayProvider
}

/** Starts api and worker in this process, with simulated relays. */
export async function startHetznerRegions({ names, variables, requestMillisMax, settings = {}, around }: Options) {
  const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
  const setting = JSON.stringify(
    names.map((region) => ({ region, display_name: region, provider: 'hetzner', hetzner, ...settings })),
  )
  const clouds = new Map<string, { cloud: HetznerServer; provider: RelayProvider }>()
  for (const region of regionsSchema.parse(setting)) {
    const cloud = await startHetznerServer()
    atEnd(() => cloud.close())
    const provider = createProvider(region, cloud, requestMillisMax)
    clouds.set(region.region, { cloud, provider: around?.(provider, region.region) ?? provider })
  }
  const cloudOf = (name: string) => {
    const found = clouds.get(name)
    if (!found) throw new Error(`no region ${name}`)
    return found
  }
  const service = await startService({
    variables: { SVC_REGIONS: setting, SVC_HETZNER_TOKEN: 'of-no-double', ...variables },
    around: (_, region) => cloudOf(region).provider,
  })
  const [masterSecret = ''] = service.api.services.config.relayAuthSecrets
  for (const { cloud } of clouds.values()) startMachines({ cloud, api: service.api, masterSecret })
  return (name: string): CloudRegion => createRegion(name, cloudOf(name).cloud, service)
}

function createProvider(region: RegionConfig, { apiUrl, token }: HetznerServer, requestMillisMax: number) {
  const log = createLog('test', 'silent', new Writable({ write: (_chunk, _encoding, done) => done() }))
  const userData = () => '#cloud-config\n'
  return createHetznerRelayProvider({
    region,
    apiUrl,
    token,
    requestMillisMax,
    log,
    userData,
    fleetName: undefined,
    pollMillis: 100,
  })
}

function createRegion(name: string, cloud: HetznerServer, service: TestService): CloudRegion {
  const { sql, services } = service.api
  const rowOf = async (sessionId: string) =>
    (
      await sql<{ state: string; reason: string; detail: string | null }[]>`
        select state, reason, detail from relay_sessions where id = ${sessionId}`
    )[0]
  return {
    name,
    cloud,
    service,
    start: async () => {
      const user = await service.user()
      const { status, body } = await user.start({ region: name })
      expect(status).toBe(201)
      return { user, sessionId: body.session.session_id }
    },
    untilState: async (sessionId, state, secondsMax = 60) => {
      const row = await eventually(
        () => rowOf(sessionId),
        (found) => found?.state === state,
        secondsMax,
      )
      return [row?.state, row?.reason, row?.detail].filter((text) => typeof text === 'string')
    },
    untilCleanedUp: async (sessionId, secondsMax = 60) => {
      const workflow = services.temporal.workflow.getHandle(relaySessionWorkflowId(sessionId))
      await eventually(
        async () => ({
          servers: cloud.project.servers().map((server) => server.name),
          rows: (await sql`select from instances where session_id = ${sessionId} and gone_at is null`).count,
          workflow: (await workflow.describe()).status.name,
        }),
        ({ servers, rows, workflow }) => servers.length === 0 && rows === 0 && workflow === 'COMPLETED',
        secondsMax,
      )
      expect(cloud.project.mostAtOnce('svc-region', name)).toBeLessThanOrEqual(1)
    },
    skipListLag: async (sessionId) => {
      await sql`
        update instances set create_attempted_at = create_attempted_at - interval '61 seconds'
        where session_id = ${sessionId}`
    },
    timesOf: (method) => {
      const times = cloud.requests.filter((request: ReceivedRequest) => request.method === method).map(({ at }) => at)
      return times.map((at) => at - (times[0] ?? 0))
    },
  }
}
