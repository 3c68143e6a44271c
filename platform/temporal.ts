/** Connections to the Temporal server, which may be away when a process starts and come and go while it runs. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client, Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client'
import { NativeConnection } from '@temporalio/worker'
import type { Config } from './config.ts'
import type { Logger } from './log.ts'

type TemporalConfig = Config['temporal']

const connectionOptions = ({ address, apiKey, tls, tlsCa, tlsCert, tlsKey }: TemporalConfig) => ({
  address,
  ...(apiKey ? { apiKey } : {}),
  ...(tls || apiKey
    ? {
        tls: {
          ...(tlsCa ? { serverRootCACertificate: Buffer.from(tlsCa) } : {}),
          ...(tlsCert && tlsKey ? { clientCertPair: { crt: Buffer.from(tlsCert), key: Buffer.from(tlsKey) } } : {}),
        },
      }
    : {}),
})

/** A client that connects when it is first used, and again after each loss. */
export function connectTemporal(config: TemporalConfig): Client {
  const options: ConnectionOptions = connectionOptions(config)
  return new Client({ connection: Connection.lazy(options), namespace: config.namespace })
}

/** A worker's own connection. Waits for the server for as long as it takes, and says so. */
export async function connectTemporalWorker(
  config: TemporalConfig,
  log: Logger,
  signal?: AbortSignal,
): Promise<NativeConnection> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await NativeConnection.connect(connectionOptions(config))
    } catch (error) {
      signal?.throwIfAborted()
      if (attempt % 10 === 0)
        log.warn({ err: error, address: config.address }, 'Temporal is not there yet, trying again')
      await sleep(Math.min(250 * 2 ** attempt, 2000), undefined, signal ? { signal } : {})
    }
  }
}

/** Whether the server answers within `millis`. */
export async function isTemporalThere(client: Client, millis = 1000): Promise<boolean> {
  try {
    await client.withDeadline(Date.now() + millis, () => client.workflowService.getSystemInfo({}))
    return true
  } catch {
    return false
  }
}

/** Whether a call failed because the server was away, or took too long: the same call may succeed later. */
export const isTemporalOutage = (error: unknown): boolean =>
  isGrpcServiceError(error)
    ? [1, 4, 8, 14].includes(error.code)
    : error instanceof Error && error.name === 'ServiceError'

/** What operators can search workflows by; all are keywords. Stored unencrypted: never a secret. */
export const searchAttributes = ['RelayState', 'Region', 'PlanTier', 'UserId'] as const

/**
 * Tells the server of the attributes that operators search by. Those that exist already are fine; a server that lets nobody
 * add any must have been given them before, by whoever runs it.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
  log: Logger,
): Promise<void> {
  const keyword = 2
  try {
    const known = await connection.operatorService.listSearchAttributes({ namespace })
    const missing = searchAttributes.filter((name) => !(name in (known.customAttributes ?? {})))
    if (missing.length === 0) return
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, keyword])),
    })
  } catch (error) {
    log.warn(
      { err: error },
      `search attributes could not be added: make sure that there are ${searchAttributes.join(', ')}, all keywords`,
    )
  }
}
