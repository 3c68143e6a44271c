/** Connections to the Temporal server, which may be away when a process starts and come and go while it runs. */
import { Client, Connection, type ConnectionOptions, isGrpcServiceError } from '@temporalio/client'
import type { Config } from './config.ts'

export type TemporalConfig = Config['temporal']

/** What both kinds of connection are made with. */
export const connectionOptions = ({ address, apiKey, tls, tlsCa, tlsCert, tlsKey }: TemporalConfig) => ({
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
