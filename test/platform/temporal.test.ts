import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readConfig } from '../../platform/config/config.ts'
import { findFreePort } from '../../platform/embedded/ports.ts'
import { connectTemporal, isTemporalOutage } from '../../platform/temporal.ts'
import { testEnvironment } from '../support/environment.ts'

/** A client of an address where no server listens. */
const connectNowhere = async () => {
  const { temporal } = readConfig(testEnvironment({ TEMPORAL_ADDRESS: `127.0.0.1:${await findFreePort()}` }))
  return connectTemporal(temporal)
}

// A retry after the close would be an uncaught exception, which fails the run.
test('a call that is being retried when the connection is closed fails as an outage', async () => {
  const { client, close } = await connectNowhere()
  const call = client.withDeadline(Date.now() + 60_000, () => client.workflowService.getSystemInfo({}))
  const failure = call.catch((error: unknown) => error)
  await sleep(500)
  const startedAt = performance.now()
  await close()
  expect(isTemporalOutage(await failure)).toBe(true)
  expect(performance.now() - startedAt).toBeLessThan(5000)
})

test('a connection that was never used is closed at once', async () => {
  const { close } = await connectNowhere()
  const startedAt = performance.now()
  await close()
  expect(performance.now() - startedAt).toBeLessThan(500)
})
