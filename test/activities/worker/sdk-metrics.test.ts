/** The metrics that a worker serves itself: those of the Temporal SDK and of its process. */
import { expect, test } from 'vitest'
import { createDatabase } from '../../support/api.ts'
import { testEnvironment } from '../../support/environment.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { findFreePort } from '../../support/ports.ts'
import { startProgram } from '../../support/programs.ts'
import { eventually } from '../../support/relays.ts'

const database = await createDatabase()
const startWorker = async (address: string) =>
  startProgram(
    'worker',
    testEnvironment({
      DATABASE_URL: database.url,
      SVC_DATA_DIR: await temporaryFolder(),
      SVC_TEMPORAL_TASK_QUEUE: 'sdk-metrics',
      SVC_WORKER_METRICS_ADDRESS: address,
    }),
  )

test('a worker serves the metrics of the SDK and of its process', async () => {
  const address = `127.0.0.1:${await findFreePort()}`
  const worker = await startWorker(address)
  const read = () =>
    fetch(`http://${address}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    )
  const text = await eventually(read, (page) => /^temporal_num_pollers/m.test(page))
  expect(text).toMatch(/^temporal_request_total\{/m)
  expect(text).toMatch(/^temporal_request_latency_seconds_bucket\{/m)
  expect(Number(/^process_resident_memory_bytes(?:\{.*\})? (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(50e6)
  for (const name of ['process_cpu_seconds_total', 'nodejs_heap_size_used_bytes', 'nodejs_eventloop_lag_p99_seconds'])
    expect(text).toMatch(new RegExp(`^${name}[{ ]`, 'm'))

  // The address is taken by the first worker now.
  const second = await startWorker(address)
  await eventually(second.output, (output) => output.includes(`SVC_WORKER_METRICS_ADDRESS ${address} cannot be used`))
  await worker.stop()
})
