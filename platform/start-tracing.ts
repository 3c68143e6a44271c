/** Starts OpenTelemetry traces when an endpoint is set. Without one nothing of OpenTelemetry is loaded. */
import type { Config } from './config/config.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Tracing } from './tracing.ts'

/**
 * @param program the name of the service in traces, unless `OTEL_SERVICE_NAME` has another one.
 * @returns undefined while no endpoint is set.
 */
export async function startTracing(
  { tracing }: Pick<Config, 'tracing'>,
  program: string,
  life: Lifecycle,
): Promise<Tracing | undefined> {
  if (!tracing.isEnabled) return undefined
  const { createOpenTelemetry } = await import('./opentelemetry.ts')
  return life.hold('tracing', createOpenTelemetry(program), (it) => it.shutdown())
}
