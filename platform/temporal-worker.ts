/**
 * A worker's connection to the Temporal server. Apart from the client's: the native library that comes with it is large, and
 * the api does without.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { NativeConnection } from '@temporalio/worker'
import type { Logger } from './log.ts'
import { connectionOptions, searchAttributes, type TemporalConfig } from './temporal.ts'

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
