/** Programs that start before their servers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readStackConfig } from '../../platform/config/stack.ts'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { startEmbeddedTemporal } from '../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../platform/log.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { findFreePort } from '../support/ports.ts'
import { startProgram, untilWell } from '../support/programs.ts'
import { eventually } from '../support/relays.ts'

test('the api and the worker start before Postgres and Temporal, and work once both are reachable', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'relay-late-'))
  const log = createLog('test', 'fatal')
  const { embedded, searchPath, cacheDir } = readStackConfig()
  const executable = await findTemporalCli({
    explicit: embedded.temporalCli,
    searchPath,
    dataDir: dir,
    cacheDir,
    progress: () => {},
  })
  const [port, temporalPort, databasePort] = await Promise.all([findFreePort(), findFreePort(), findFreePort()])
  const startPostgres = () => startEmbeddedPostgres({ dir: join(dir, 'postgres'), port: async () => databasePort, log })
  // Creates the cluster, so that its URL is known. The server is stopped when the programs start.
  const first = await startPostgres()
  await first.stop()
  const env = testEnvironment({
    PORT: String(port),
    DATABASE_URL: first.url,
    TEMPORAL_ADDRESS: `127.0.0.1:${temporalPort}`,
    SVC_DATA_DIR: dir,
  })
  startProgram('api', env)
  startProgram('worker', env)
  const url = `http://127.0.0.1:${port}`
  await eventually(
    () => fetch(`${url}/livez`).catch(() => undefined),
    (answer) => answer?.status === 200,
  )
  const health = await fetch(`${url}/health`)
  expect([health.status, await health.json()]).toEqual([
    503,
    { status: 'failing', checks: { postgres: 'failing', temporal: 'failing', worker: 'failing', tasks: 'failing' } },
  ])
  const refused = await fetch(`${url}/api/v1/capacity/status`)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])

  const postgres = await startPostgres()
  const temporal = await startEmbeddedTemporal({ executable, dir: null, port: async () => temporalPort, log })
  atEnd(async () => {
    await temporal.stop()
    await postgres.stop()
    await rm(dir, { recursive: true, force: true })
  })
  await untilWell(url)
  expect((await fetch(`${url}/api/v1/capacity/status`)).status).toBe(200)
})
