/** The connection to Temporal while it is closed. */
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { readConfig } from '../../platform/config/config.ts'
import { connectTemporal, isTemporalOutage } from '../../platform/temporal.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { eventually } from '../support/relays.ts'

/** A client of a server that ends each connection. */
const connectInVain = async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.resetAndDestroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => server.close())
  const { port } = server.address() as AddressInfo
  const { temporal } = readConfig(testEnvironment({ TEMPORAL_ADDRESS: `127.0.0.1:${port}` }))
  return { ...connectTemporal(temporal), connections: () => connections }
}

// A retry after the close would be an uncaught exception, which fails the run.
test('a call that is being retried when the connection is closed fails as an outage', async () => {
  const { client, close, connections } = await connectInVain()
  // Longer than a test may take.
  const call = client.withDeadline(Date.now() + 600_000, () => client.workflowService.getSystemInfo({}))
  const failure = call.catch((error: unknown) => error)
  await eventually(connections, (count) => count > 1)
  await close()
  expect(isTemporalOutage(await failure)).toBe(true)
})

test('a connection that was never used can be closed', async () => {
  const { close, connections } = await connectInVain()
  await close()
  expect(connections()).toBe(0)
})
