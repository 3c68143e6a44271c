/** Connections to the Temporal server, which may be unreachable when a process starts and at any time later. */
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
import type { Tracing } from './tracing.ts'

export type TemporalConfig = Config['temporal']

/** The options of the client's and the worker's connection. */
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

/** A client that connects at its first use, and again whenever the connection is lost. */
export function connectTemporal(
  config: TemporalConfig,
  tracing?: Pick<Tracing, 'clientInterceptor'>,
): { client: Client; close(): Promise<void> } {
  const retries = createRetries()
  const options: ConnectionOptions = { ...connectionOptions(config), interceptors: [retries.interceptor] }
  const connection = Connection.lazy(options)
  const close = async () => {
    await retries.end()
    await connection.close()
  }
  const interceptors = { workflow: tracing ? [tracing.clientInterceptor] : [] }
  return { client: new Client({ connection, namespace: config.namespace, interceptors }), close }
}

/**
 * The default retries of the SDK, with a way to end them. A retry after the connection was closed would throw in a
 * timer, where nothing can catch it, and end the process.
 */
function createRetries() {
  const defaults = defaultGrpcRetryOptions({ maxIntervalMs: () => 2000 })
  let isEnding = false
  let lastRetryAt = 0
  const interceptor = makeGrpcRetryInterceptor({
    retryableDecider: (attempt, status) => !isEnding && defaults.retryableDecider(attempt, status),
    delayFunction: (attempt, status) => {
      const millis = defaults.delayFunction(attempt, status)
      lastRetryAt = Math.max(lastRetryAt, performance.now() + millis)
      return millis
    },
  })
  /** Resolves within three seconds, when no retry is scheduled any more. */
  const end = async () => {
    isEnding = true
    const millis = lastRetryAt - performance.now()
    // Timers may fire a millisecond early.
    if (millis > 0) await sleep(millis + 5)
  }
  return { interceptor, end }
}

/** Whether the server answers within `millis`. */
export async function isTemporalReachable(client: Client, millis = 1000): Promise<boolean> {
  try {
    await client.withDeadline(Date.now() + millis, () => client.workflowService.getSystemInfo({}))
    return true
  } catch {
    return false
  }
}

/**
 * How long the oldest task has waited for a worker, in seconds; 0 when none waits. Rejects when the server does not
 * answer in time.
 */
export async function oldestTaskSeconds(
  client: Client,
  { namespace, taskQueue }: Pick<TemporalConfig, 'namespace' | 'taskQueue'>,
  millis: number,
): Promise<number> {
  const [workflowTasks, activityTasks] = [1, 2]
  const ages = await Promise.all(
    [workflowTasks, activityTasks].map(async (taskQueueType) => {
      const { stats } = await client.withDeadline(Date.now() + millis, () =>
        client.workflowService.describeTaskQueue({
          namespace,
          taskQueueType,
          reportStats: true,
          taskQueue: { name: taskQueue },
        }),
      )
      return Number(stats?.approximateBacklogAge?.seconds ?? 0)
    }),
  )
  return Math.max(...ages)
}

/** Whether a call failed because the server was unreachable or too slow. The same call may succeed later. */
export const isTemporalOutage = (error: unknown): boolean =>
  isGrpcServiceError(error)
    ? [1, 4, 8, 14].includes(error.code)
    : error instanceof Error && error.name === 'ServiceError'

/**
 * The names of the keyword attributes by which operators search workflows (`workflows/search-attributes.ts`), for
 * registration.
 */
export const searchAttributes = ['RelayState', 'Region', 'Connection', 'PlanTier', 'PlanStatus', 'UserId'] as const

/** The workflow in the Temporal UI. */
export const workflowUrl = (
  { uiUrl, namespace }: { readonly uiUrl: string; readonly namespace: string },
  workflowId: string,
): string => `${uiUrl}/namespaces/${namespace}/workflows/${encodeURIComponent(workflowId)}`
