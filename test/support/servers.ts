/**
 * Builds the programs and the workflow bundle, and starts one Postgres and one Temporal per test run, or uses those of
 * TEST_DATABASE_URL and TEST_TEMPORAL_ADDRESS.
 */
import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type {} from 'vitest'
import type { TestProject } from 'vitest/node'
import { workflowBundlePath } from '../../activities/worker/workflow-bundle.ts'
import { connectPostgres } from '../../db/connection.ts'
import { migrate } from '../../db/migrations.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { startEmbeddedTemporal } from '../../platform/embedded/temporal.ts'
import { findTemporalCli } from '../../platform/embedded/temporal-cli.ts'
import { createLog } from '../../platform/log.ts'
import { endProcess, findProcess, listProcesses, sendSignal } from '../../platform/processes.ts'
import { listServerFolders, makeServerFolder, removeFolder } from './folders.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of an empty database. Tests create their own databases on its server. */
    postgresUrl: string
    /** The name of a migrated template database. */
    templateDatabase: string
    /** host:port of a server with the namespace `default`. */
    temporalAddress: string
  }
}

const say = (text: string) => process.stderr.write(`[servers] ${text}\n`)
const log = createLog('test-servers', 'warn')
const buildPrograms = fileURLToPath(new URL('../../platform/build-programs.mjs', import.meta.url))

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stops: Array<() => Promise<void>> = []
  const teardown = async () => {
    for (const stop of stops) await stop()
  }
  await endServersOfDeadRuns()
  const began = performance.now()
  // Not by the first tests that start one: all of them would build it at once, and one of them limits the size of
  // files.
  await promisify(execFile)(process.execPath, [buildPrograms])
  const given = readStackConfig().test
  const started = await Promise.allSettled([
    given.databaseUrl ?? startPostgres(stops),
    given.temporalAddress ?? startTemporal(stops),
    workflowBundlePath(log),
  ])
  const failed = started.find((each) => each.status === 'rejected')
  if (failed) {
    await teardown()
    throw failed.reason
  }
  const [postgresUrl, temporalAddress] = started.map((each) => (each.status === 'fulfilled' ? each.value : ''))
  project.provide('postgresUrl', postgresUrl ?? '')
  project.provide('temporalAddress', temporalAddress ?? '')
  project.provide('templateDatabase', await makeTemplate(postgresUrl ?? '', stops))
  say(`Postgres and Temporal are ready after ${Math.round(performance.now() - began)} ms`)
  return teardown
}

/** Copying a migrated template saves the migration in each test file. */
async function makeTemplate(postgresUrl: string, stops: Array<() => Promise<void>>): Promise<string> {
  const name = `template_${process.pid}_${Date.now()}`
  const server = connectPostgres(postgresUrl, 1)
  await server.unsafe(`create database ${name}`)
  // Runs before the server stops.
  stops.unshift(async () => {
    await server.unsafe(`drop database if exists ${name} with (force)`)
    await server.end({ timeout: 5 })
  })
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  const database = connectPostgres(url.href, 1)
  await migrate(database)
  // As in a service that was installed long ago.
  await database`insert into epochs (name, began_at) values ('initial', now() - interval '30 days')`
  await database.end({ timeout: 5 })
  return name
}

/** Ends the server, and removes its folder, when the run is aborted before its teardown. */
const endWithRunner = (pid: number, dir: string) =>
  process.once('exit', () => {
    sendSignal(pid, 'SIGKILL')
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  })

/** The folder name contains the pid of the run, so that a later run can check whether it is still active. */
const folderName = `servers-of-${process.pid}-`

/** Ends the servers of killed runs, and removes their folders. */
async function endServersOfDeadRuns(): Promise<void> {
  const runnerOf = (command: string) => Number(/relay-test-servers-of-(\d+)-/.exec(command)?.[1] ?? 0)
  for (const server of await listProcesses((command) => runnerOf(command) > 0)) {
    const runner = runnerOf(server.command)
    if ((await findProcess(runner)) !== undefined) continue
    if (await endProcess(server, [['SIGKILL', 5000]])) say(`ended a server of run ${runner}`)
  }
  // They take memory.
  for (const folder of await listServerFolders()) {
    const runner = runnerOf(`${folder}-`)
    if (runner > 0 && (await findProcess(runner)) === undefined) await removeFolder(folder)
  }
}

async function startPostgres(stops: Array<() => Promise<void>>): Promise<string> {
  const dir = await makeServerFolder(folderName)
  // Not durable after a power failure, but after a killed process. Parallel test files with several services each need
  // more connections than one service: up to 96 were measured.
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '400' }
  const server = await startEmbeddedPostgres({ dir, log, settings })
  endWithRunner(server.pid, dir)
  await makeSignInCheap(server.url)
  stops.push(async () => {
    await server.stop()
    await removeFolder(dir)
  })
  return server.url
}

/**
 * Each of thousands of connections derives a key from the password, which takes milliseconds with the default of 4096
 * rounds.
 */
async function makeSignInCheap(url: string): Promise<void> {
  const { username, password } = new URL(url)
  const sql = connectPostgres(url, 1)
  await sql`set scram_iterations = 1`
  // Base64url, which needs no escapes.
  await sql.unsafe(`alter role ${username} password '${password}'`)
  await sql.end({ timeout: 5 })
}

async function startTemporal(stops: Array<() => Promise<void>>): Promise<string> {
  const { embedded, searchPath, dataDir, cacheDir } = readStackConfig()
  let printedStep = ''
  const executable = await findTemporalCli({
    explicit: embedded.temporalCli,
    searchPath,
    dataDir,
    cacheDir,
    // Prints one line per step, without the progress after the colon.
    progress: (text) => {
      const step = text.split(': ')[0] ?? text
      if (step !== printedStep) say(text)
      printedStep = step
    },
  })
  const dir = await makeServerFolder(folderName)
  const server = await startEmbeddedTemporal({ executable, dir, log })
  endWithRunner(server.pid, dir)
  stops.push(async () => {
    await server.stop()
    await removeFolder(dir)
  })
  return server.address
}
