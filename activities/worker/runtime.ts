/** The Temporal SDK's runtime: its log, and the listener for the metrics of the SDK. */
import { DefaultLogger, Runtime } from '@temporalio/worker'
import type { Logger } from '../../platform/log.ts'

/**
 * Installs the runtime, once in a process and before any worker. The process itself handles its signals.
 * @param metricsAddress `ip:port` where `GET /metrics` serves the metrics of the SDK; without it there is no listener.
 * Throws when the address cannot be used.
 */
export function installRuntime(log: Logger, metricsAddress?: string): Runtime {
  try {
    return Runtime.install({
      shutdownSignals: [],
      telemetryOptions: {
        logging: { forward: {}, filter: { core: 'WARN', other: 'ERROR' } },
        ...(metricsAddress && { metrics: { prometheus: { bindAddress: metricsAddress, ...officialNames } } }),
      },
      logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
        const { error, ...rest } = (meta ?? {}) as { error?: unknown }
        log[level === 'WARN' ? 'warn' : 'error']({ ...rest, ...(error ? { err: error } : {}) }, message)
      }),
    })
  } catch (error) {
    if (!metricsAddress) throw error
    throw new Error(`SVC_WORKER_METRICS_ADDRESS ${metricsAddress} cannot be used: ${(error as Error).message}`)
  }
}

/** Names and units as in Temporal's documentation, and in the dashboards and rules of others. */
const officialNames = { countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true }
