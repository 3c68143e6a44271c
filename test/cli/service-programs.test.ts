/** The programs of a service whose log cannot be written. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { countAliveWorkers } from '../../db/operations/workers.ts'
import { ServerProcess } from '../../platform/embedded/server-process.ts'
import { nodeArguments } from '../../platform/launcher.ts'
import { createDatabase } from '../support/api.ts'
import { testEnvironment } from '../support/environment.ts'
import { temporaryFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'
import { eventually } from '../support/relays.ts'

/** Runs a program of the service as `npm start` does, with its log on a device that has no room for any line. */
async function startOnFullDisk(file: string, variables: Readonly<Record<string, string>> = {}) {
  const database = await createDatabase()
  onTestFinished(() => database.drop())
  const port = String(await findFreePort())
  const program = await ServerProcess.start({
    executable: process.execPath,
    args: nodeArguments(file),
    logFile: '/dev/full',
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.HOME ?? '',
      LOG_LEVEL: 'trace',
      PORT: port,
      SVC_SITE_PORT: port,
      SVC_DATA_DIR: await temporaryFolder(),
      ...testEnvironment({ DATABASE_URL: database.url, ...variables }),
    },
  })
  onTestFinished(() => program.end([['SIGKILL', 2000]]))
  return { program, url: `http://127.0.0.1:${port}`, database }
}

const statusOf = (url: string) =>
  fetch(url, { signal: AbortSignal.timeout(2000) }).then(
    ({ status }) => status,
    () => undefined,
  )
const becomes = (url: string, status: number) =>
  eventually(
    () => statusOf(url),
    (found) => found === status,
  )

const endsSoon = async (program: ServerProcess) => {
  await program.end([['SIGTERM', 5000]])
  expect(await program.exited).toBe('ended with code 0')
}

test('the API serves and stops gracefully although its log cannot be written', async () => {
  const { program, url } = await startOnFullDisk('api/server.ts')
  await becomes(`${url}/readyz`, 200)
  for (let request = 0; request < 50; request += 1) expect(await statusOf(`${url}/api/v1/capacity/status`)).toBe(200)
  expect(await statusOf(`${url}/livez`)).toBe(200)
  await endsSoon(program)
})

test('the site serves and stops gracefully although its log cannot be written', async () => {
  const { program, url } = await startOnFullDisk('web/server.ts', {
    SVC_API_URL: `http://127.0.0.1:${await findFreePort()}`,
  })
  await becomes(`${url}/livez`, 200)
  expect(await statusOf(`${url}/login`)).toBe(200)
  await endsSoon(program)
})

test('the worker runs workflows and stops gracefully although its log cannot be written', async () => {
  const { program, database } = await startOnFullDisk('activities/worker/worker.ts', {
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomBytes(6).toString('hex')}`,
  })
  const sql = connectPostgres(database.url, 1)
  const alive = await eventually(
    () => countAliveWorkers(sql).catch(() => 0),
    (count) => count === 1,
  )
  expect(alive).toBe(1)
  await sql.end({ timeout: 5 })
  await program.end([['SIGTERM', 15_000]])
  expect(await program.exited).toBe('ended with code 0')
})
