/** Connections to the Temporal server, which may be away when a process starts and come and go while it runs. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  isGrpcServiceError,
  makeGrpcRetryInterceptor,
} from '@temporalio/client'
import type { Config } from './config/config.ts'

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
export function connectTemporal(config: TemporalConfig): { client: Client; close(): Promise<void> } {
  const retries = createRetries()
  const options: ConnectionOptions = { ...connectionOptions(config), interceptors: [retries.interceptor] }
  const connection = Connection.lazy(options)
  const close = async () => {
    await retries.end()
    await connection.close()
  }
  return { client: new Client({ connection, namespace: config.namespace }), close }
}

/**
 * The library's own retries, which can be ended: a retry whose time comes when the connection is closed throws in a timer,
 * where nothing catches it, and ends the process.
 */
function createRetries() {
  const usual = defaultGrpcRetryOptions({ maxIntervalMs: () => 2000 })
  let isEnding = false
  let lastRetryAt = 0
  const interceptor = makeGrpcRetryInterceptor({
    retryableDecider: (attempt, status) => !isEnding && usual.retryableDecider(attempt, status),
    delayFunction: (attempt, status) => {
      const millis = usual.delayFunction(attempt, status)
      lastRetryAt = Math.max(lastRetryAt, performance.now() + millis)
      return millis
    },
  })
  /** Resolves within three seconds, once no retry is due any more. */
  const end = async () => {
    isEnding = true
    const millis = lastRetryAt - performance.now()
    // Timers may fire a millisecond apart from their time.
    if (millis > 0) await sleep(millis + 5)
  }
  return { interceptor, end }
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
