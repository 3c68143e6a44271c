/**
 * The service under test: two APIs behind a load balancer, two workers, the site, Temporal and Postgres, all real
 * processes. Workers and relays reach the load balancer through a link of their own, which is the path of reports.
 */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client as TemporalClient } from '@temporalio/client'
import { startProgram } from '../../cli/service-programs.ts'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { readConfig } from '../../platform/config/config.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { rateLimitDefaults } from '../../platform/config/values.ts'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { startEmbeddedTemporal } from '../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { connectTemporal } from '../../platform/temporal.ts'
import { endLocalRelays, relayFolderOf } from '../../providers/relay/local-relays.ts'
import { startLoadBalancer } from '../support/load-balancer.ts'
import { findFreePort } from '../support/ports.ts'
import { RelayPaths } from '../support/relay-paths.ts'
import { type CutMode, type Link, startLink } from './link.ts'
import { regions, type Target } from './plan.ts'
import { Server, waitFor } from './server.ts'
import { times } from './service-times.ts'

const readySecondsMax = 90
const log = createLog('chaos', 'fatal')
/** Relays that are processes listen there. The service and its users have 127.0.0.1 as their address. */
export const relayHost = '127.0.0.2'

export interface Service {
  readonly apiUrl: string
  readonly siteUrl: string
  /** Not through any link, for reading the rows. */
  readonly sql: Database
  readonly temporal: TemporalClient
  readonly relayAuthSecret: string
  readonly webhookSecret: string
  readonly operatorPassword: string
  readonly dataDir: string
  readonly servers: Readonly<Record<Target, Server>>
  /**
   * Of the workers and the relays, by the address that they have as `SVC_API_URL`. All other clients have another way.
   */
  readonly reportPath: {
    cut(mode: CutMode): void
    restore(): void
    /** Resolves when an API answers through it. */
    untilReady(): Promise<void>
  }
  /** Before the {@link reportPath} of each relay, and before its statistics port. */
  readonly relayPaths: RelayPaths
}

interface ServiceOptions {
  /** Stops everything that this function starts. */
  readonly life: Lifecycle
  /** The data of the servers and the logs of all processes. */
  readonly folder: string
  /** Where the simulated regions of the workers create their instances. */
  readonly cloudUrl: string
  readonly onCrash: (text: string) => void
}

/** Resolves when everything is ready. */
export async function startService({ life, folder, cloudUrl, onCrash }: ServiceOptions): Promise<Service> {
  const dataDir = join(folder, 'relays')
  await mkdir(dataDir)
  const hold = (server: Server) => life.hold(server.name, server, (it) => it.stop())
  const stores = await startStores({ folder, onCrash, hold })
  life.hold('relays', dataDir, (it) => endLocalRelays(it))

  const apiPorts = [await findFreePort(), await findFreePort()]
  const apiLinks = await Promise.all(apiPorts.map(startLink))
  const balancer = life.hold('load balancer', await startLoadBalancer(apiLinks.map(({ port }) => port)), (it) =>
    it.close(),
  )
  const balancerPort = Number(new URL(balancer.url).port)
  const siteLink = await startLink(balancerPort)
  const pathLink = await startLink(balancerPort)
  const relayPaths = life.hold('relay paths', new RelayPaths(), (it) => it.close())
  relayPaths.passStatistics(relayFolderOf(dataDir), relayHost)
  const pathUrl = `http://127.0.0.1:${await relayPaths.openApi(pathLink.port)}`
  for (const link of [...apiLinks, siteLink, pathLink]) life.hold('link', link, (it) => it.close())

  const secrets = {
    SVC_JWT_SECRET: randomBytes(48).toString('base64'),
    SVC_RELAY_AUTH_SECRET: randomBytes(48).toString('base64'),
    OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
    SVC_OPERATOR_PASSWORD: randomBytes(24).toString('base64url'),
  }
  const { environment } = readStackConfig()
  const shared = {
    PATH: environment.PATH ?? '',
    HOME: environment.HOME ?? '',
    LOG_LEVEL: 'info',
    ...secrets,
    SVC_API_URL: pathUrl,
    SVC_BILLING_PROVIDER: 'sandbox',
    SVC_DATA_DIR: dataDir,
    SVC_RATE_LIMITS: highLimits,
    SVC_REGIONS: JSON.stringify(
      regions.map((region) => ({
        region,
        display_name: region,
        provider: 'local',
        capacity: 100,
        host: relayHost,
        public_host: '127.0.0.1',
      })),
    ),
    ...timeVariables,
  }
  const starter = { folder, stores, shared, onCrash }
  const apis = await Promise.all(
    apiLinks.map(async (link, index) => {
      const port = apiPorts[index] ?? 0
      const isReady = () => isOk(`http://127.0.0.1:${port}/readyz`)
      const name = index === 0 ? ('api-1' as const) : ('api-2' as const)
      return createProgram(starter, {
        name,
        file: 'api/server.ts',
        variables: { PORT: `${port}` },
        isReady,
        links: [link],
      })
    }),
  )
  const workers = await Promise.all(
    (['worker-1', 'worker-2'] as const).map((name) =>
      createProgram(starter, { name, file: 'test/chaos/worker.ts', variables: { CHAOS_CLOUD_URL: cloudUrl } }),
    ),
  )
  const sitePort = await findFreePort()
  const siteUrl = `http://localhost:${sitePort}`
  const site = await createProgram(starter, {
    name: 'site',
    file: 'web/server.ts',
    variables: {
      SVC_SITE_PORT: `${sitePort}`,
      SVC_SITE_URL: siteUrl,
      SVC_API_URL: `http://127.0.0.1:${siteLink.port}`,
    },
    isReady: () => isOk(`${siteUrl}/login`),
    links: [siteLink],
  })
  const programs = [...apis, ...workers, site]
  programs.forEach(hold)
  await Promise.all(programs.map((program) => program.start()))

  const config = readConfig({ ...shared, DATABASE_URL: stores.databaseUrl, TEMPORAL_ADDRESS: stores.temporalAddress })
  const sql = life.hold('connections', connectPostgres(stores.databaseUrl, 4), (it) => it.end({ timeout: 5 }))
  const { client } = life.hold('Temporal client', connectTemporal(config.temporal), (it) => it.close())
  return {
    apiUrl: balancer.url,
    siteUrl,
    sql,
    temporal: client,
    dataDir,
    relayAuthSecret: secrets.SVC_RELAY_AUTH_SECRET,
    webhookSecret: secrets.SVC_BILLING_WEBHOOK_SECRET,
    operatorPassword: secrets.SVC_OPERATOR_PASSWORD,
    servers: Object.fromEntries(
      [...programs, stores.postgres, stores.temporal].map((server) => [server.name, server]),
    ) as Record<Target, Server>,
    relayPaths,
    reportPath: {
      cut: (mode) => pathLink.cut(mode),
      restore: () => pathLink.restore(),
      untilReady: () => waitFor('an API answers relays', () => isOk(`${pathUrl}/readyz`), readySecondsMax),
    },
  }
}

const timeVariables = {
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: String(times.provisionTimeoutSeconds),
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(times.healthIntervalSeconds),
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: String(times.healthTimeoutSeconds),
  SVC_RELAY_GRACE_SECONDS: String(times.graceSeconds),
  SVC_RELAY_REPLACEMENT_SECONDS: String(times.replacementSeconds),
  SVC_RELAY_STOP_GRACE_SECONDS: String(times.stopGraceSeconds),
  SVC_PAYMENT_GRACE_SECONDS: String(times.paymentGraceSeconds),
  SVC_ADDON_NOTICE_SECONDS: String(times.addonNoticeSeconds),
}

/** All requests come from one address. */
const highLimits = Object.keys(rateLimitDefaults)
  .map((name) => `${name}=9999999`)
  .join(',')

const isOk = async (url: string): Promise<boolean> => (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok

interface Stores {
  readonly postgres: Server
  readonly temporal: Server
  readonly databaseUrl: string
  readonly temporalAddress: string
  /** A link of one program to each store, which are cut off with their store. */
  newLinks(): Promise<{ readonly postgres: Link; readonly temporal: Link }>
}

async function startStores({
  folder,
  onCrash,
  hold,
}: Pick<ServiceOptions, 'folder' | 'onCrash'> & { hold: (server: Server) => Server }): Promise<Stores> {
  const { embedded, searchPath, dataDir, cacheDir } = readStackConfig()
  const cli = { explicit: embedded.temporalCli, searchPath, dataDir, cacheDir, progress: () => {} }
  const executable = await findTemporalCli(cli)
  const [postgresPort, temporalPort] = [await findFreePort(), await findFreePort()]
  const links = { postgres: [] as Link[], temporal: [] as Link[] }
  let databaseUrl = ''
  const postgres = new Server({
    name: 'postgres',
    // Settings that affect durability keep their defaults. Programs need up to 10 connections each.
    launch: async () => {
      const port = async () => postgresPort
      const server = await startEmbeddedPostgres({ dir: join(folder, 'postgres'), log, port })
      databaseUrl = server.url
      return server
    },
    untilReady: async () => {},
    links: links.postgres,
    onCrash,
  })
  const temporal = new Server({
    name: 'temporal',
    launch: () =>
      startEmbeddedTemporal({ executable, dir: join(folder, 'temporal'), log, port: async () => temporalPort }),
    untilReady: async () => {},
    links: links.temporal,
    onCrash,
  })
  await Promise.all([postgres, temporal].map((server) => hold(server).start()))
  return {
    postgres,
    temporal,
    databaseUrl,
    temporalAddress: `127.0.0.1:${temporalPort}`,
    newLinks: async () => {
      const made = { postgres: await startLink(postgresPort), temporal: await startLink(temporalPort) }
      links.postgres.push(made.postgres)
      links.temporal.push(made.temporal)
      return made
    },
  }
}

interface Starter {
  readonly folder: string
  readonly stores: Stores
  readonly shared: Readonly<Record<string, string>>
  readonly onCrash: (text: string) => void
}

interface ProgramOptions {
  readonly name: Target
  readonly file: string
  readonly variables: Readonly<Record<string, string>>
  /** The default is a line in its log. */
  readonly isReady?: () => Promise<boolean>
  /** Cut off with the program. The default is its links to the stores. */
  readonly links?: readonly Link[]
}

async function createProgram(starter: Starter, { name, file, variables, isReady, links }: ProgramOptions) {
  const { folder, stores, shared, onCrash } = starter
  const own = await stores.newLinks()
  const databaseUrl = new URL(stores.databaseUrl)
  databaseUrl.port = `${own.postgres.port}`
  const env = {
    ...shared,
    DATABASE_URL: databaseUrl.href,
    TEMPORAL_ADDRESS: `127.0.0.1:${own.temporal.port}`,
    ...variables,
  }
  const logFile = join(folder, `${name}.log`)
  let offset = 0
  const launch = async () => {
    offset = (await stat(logFile).catch(() => undefined))?.size ?? 0
    return startProgram({ file, env, logFile })
  }
  const acceptsWork = async () => (await readFile(logFile)).subarray(offset).includes('the worker accepts work')
  const untilReady = () => waitFor(`${name} is ready, see ${logFile}`, isReady ?? acceptsWork, readySecondsMax)
  return new Server({ name, launch, untilReady, links: links ?? [own.postgres, own.temporal], onCrash })
}
