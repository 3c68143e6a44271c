/**
 * The connection of a worker to the Temporal server. In a file of its own, so that the api does not load the worker's
 * large native library.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { NativeConnection } from '@temporalio/worker'
import type { Logger } from './log.ts'
import { connectionOptions, searchAttributes, type TemporalConfig } from './temporal.ts'

/** Connects, and repeats it until the server is reachable. Logs a warning while it waits. */
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
        log.warn({ err: error, address: config.address }, 'Temporal is not reachable, trying again')
      await sleep(Math.min(250 * 2 ** attempt, 2000), undefined, signal ? { signal } : {})
    }
  }
}

/**
 * Adds the missing search attributes to the namespace. Logs a warning when the server does not permit it: then its
 * administrator has to add them.
 */
export async function registerSearchAttributes(
  connection: NativeConnection,
  namespace: string,
  log: Logger,
): Promise<void> {
  const keyword = 2
  try {
    const existing = await connection.operatorService.listSearchAttributes({ namespace })
    const missing = searchAttributes.filter((name) => !(name in (existing.customAttributes ?? {})))
    if (missing.length === 0) return
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing.map((name) => [name, keyword])),
    })
  } catch (error) {
    log.warn({ err: error }, `search attributes could not be added: add ${searchAttributes.join(', ')} as keywords`)
  }
}
