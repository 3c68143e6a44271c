/**
 * Plugins and relays on one api and one worker from one machine (`npm run load`, docs/performance.md): real workflows
 * and health reports, relays without processes, rate limits as in production.
 */
import { Command, InvalidArgumentError } from 'commander'
import { createSecretToken, hashSecretToken } from '../../api/identity/secret-tokens.ts'
import { insertRefreshToken } from '../../db/identity/refresh-tokens.ts'
import { findFreePort } from '../../platform/embedded/ports.ts'
import { jsonOption } from '../arguments.ts'
import { insertUsers } from '../data.ts'
import { formatNumber } from '../pairs.ts'
import { type Row, writeRows } from '../rows.ts'
import { logProgress, type Stack, startStack, waitUntil, waitUntilAnswering } from '../stack.ts'
import { formatTable } from '../table.ts'
import { ApiClient } from './api-client.ts'
import { processRows, relayRows, requestRows } from './figures.ts'
import { Plugin } from './plugin.ts'
import { ProcessSamples } from './process-samples.ts'
import { Recorder } from './recorder.ts'
import { Schedule } from './schedule.ts'

/** As many as the plan of a plugin's user allows. */
const relaysPerPluginMax = 4
const progressMillis = 10_000
/** Relays that are started a second before the measurement. */
const startsPerSecond = 20
const taskQueue = { SVC_TEMPORAL_TASK_QUEUE: 'load' }
/** The limits of production. */
const variables = { ...taskQueue, SVC_RATE_LIMITS: '', SVC_JWT_TTL_SECONDS: '720' }

interface LoadArguments {
  readonly seconds: number
  readonly plugins: number
  readonly relays: number
  readonly apis: number
  readonly watched: number
  readonly json?: string
}

function readArguments(): LoadArguments {
  const command = new Command('npm run load --')
    .description('Runs plugins and relays against one worker, and prints a table (docs/performance.md).')
    .option('--seconds <number>', 'length of the measurement after the ramp', toCount, 600)
    .option('--plugins <number>', 'signed-in plugins', toCount, 1000)
    .option('--relays <number>', 'relays that report', toCount, 2000)
    .option('--apis <number>', 'processes of the api', toCount, 1)
    .option('--watched <number>', 'plugins that watch their relays over a socket', toNumber, 0)
    .addOption(jsonOption)
    .parse()
  const options = command.opts<LoadArguments>()
  if (options.relays > options.plugins * relaysPerPluginMax)
    command.error(`error: ${options.plugins} plugins may have at most ${options.plugins * relaysPerPluginMax} relays.`)
  return options
}

const toNumber = (text: string): number => (text === '0' ? 0 : toCount(text))

function toCount(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new InvalidArgumentError('Use a whole number from 1 to 999999.')
  return Number(text)
}

const { seconds, plugins, relays, apis, watched, json } = readArguments()
const rampSeconds = Math.max(10, relays / startsPerSecond)
/** Some relays are stopped at any time, since plugins restart them. */
const activeShare = 0.9
/** On a busy machine. */
const rampSecondsMax = rampSeconds * 10 + 120

/** Plugins with their relays spread evenly over them. */
async function createPlugins(stack: Stack, client: ApiClient, schedule: Schedule): Promise<Plugin[]> {
  const users = await insertUsers(stack, plugins)
  return Promise.all(
    users.map(async ({ authSessionId }, index) => {
      const refreshToken = createSecretToken()
      await insertRefreshToken(stack.sql, hashSecretToken(refreshToken), authSessionId)
      const count = Math.floor(((index + 1) * relays) / plugins) - Math.floor((index * relays) / plugins)
      const connectionIds = Array.from({ length: count }, (_, each) => `relay-${each + 1}`)
      const relayAuthSecret = stack.config.relayAuthSecrets[0] ?? ''
      // Spread over the ramp.
      const isWatching = Math.floor(((index + 1) * watched) / plugins) > Math.floor((index * watched) / plugins)
      return new Plugin({ client, relayAuthSecret, refreshToken, connectionIds, schedule, isWatching })
    }),
  )
}

async function startPrograms(stack: Stack, workerMetrics: string) {
  const api = await Promise.all(Array.from({ length: apis }, () => stack.start('api/server.ts', variables)))
  const worker = await stack.start('bench/fake-relay-worker.ts', {
    ...variables,
    SVC_WORKER_METRICS_ADDRESS: workerMetrics,
  })
  for (const each of api) await waitUntilAnswering(each, '/health')
  return { api, worker }
}

const countActive = (all: readonly Plugin[]): number => all.reduce((sum, plugin) => sum + plugin.activeRelays, 0)

interface Run {
  readonly plugins: readonly Plugin[]
  readonly recorder: Recorder
  readonly samples: { readonly api: ProcessSamples; readonly worker: ProcessSamples }
}

async function logState({ plugins: all, recorder, samples }: Run, since: number): Promise<void> {
  const [api, worker] = await Promise.all([samples.api.sample(), samples.worker.sample()])
  const p99 = formatNumber(recorder.summarize('active')['p99 ms'] ?? Number.NaN)
  logProgress(
    `${Math.round((performance.now() - since) / 1000)} s: ${countActive(all)} active relays, ${recorder.answered} answers, ` +
      `p99 of active ${p99} ms, api ${api} MB, worker ${worker} MB, refused ${recorder.refused}, unexpected ${recorder.unexpected}`,
  )
}

async function measure(stack: Stack): Promise<Row[]> {
  const workerMetrics = `127.0.0.1:${await findFreePort()}`
  const { api, worker } = await startPrograms(stack, workerMetrics)
  const recorder = new Recorder()
  const schedule = new Schedule()
  const urls = api.map(({ url }) => url)
  const client = new ApiClient(urls, recorder)
  const [firstApi = worker] = api
  const samples = {
    api: new ProcessSamples(firstApi, `${firstApi.url}/metrics`),
    worker: new ProcessSamples(worker, `http://${workerMetrics}/metrics`),
  }
  const run: Run = { plugins: await createPlugins(stack, client, schedule), recorder, samples }
  const beganAt = performance.now()
  const working = run.plugins.map(async (plugin, index) => {
    await schedule.sleepUntil(beganAt + (index / plugins) * rampSeconds * 1000)
    await plugin.run()
  })
  working.push(schedule.repeatEvery(progressMillis, () => logState(run, beganAt)))
  const ended = Promise.race([worker, ...api].map((program) => program.ended))
  try {
    const failed = Promise.race([ended, Promise.all(working)]).then((how) => Promise.reject(new Error(String(how))))
    return await Promise.race([measureAfterRamp(stack, run, schedule), failed])
  } finally {
    schedule.end()
    await Promise.allSettled(working)
    client.close()
    for (const example of recorder.examples) logProgress(`unexpected: ${example}`)
  }
}

async function measureAfterRamp(stack: Stack, run: Run, schedule: Schedule): Promise<Row[]> {
  const { recorder, samples } = run
  await waitUntil('the relays are active', async () => countActive(run.plugins) >= relays * activeShare, rampSecondsMax)
  logProgress(`measuring for ${seconds} s`)
  recorder.beginMeasuring()
  await Promise.all([samples.api.beginMeasuring(), samples.worker.beginMeasuring()])
  await schedule.sleepUntil(performance.now() + seconds * 1000)
  return [
    ...requestRows(recorder, seconds),
    ...(await processRows('api', samples.api)),
    ...(await processRows('worker', samples.worker)),
    ...(await measureRelays(stack)),
  ]
}

async function measureRelays({ sql }: Stack): Promise<Row[]> {
  const [counts] = await sql<{ active: number; lost: number }[]>`
    select (select count(*)::int from relay_sessions where state = 'active') as active,
      (select count(*)::int from relay_transitions where reason = 'health_lost') as lost`
  return relayRows(counts?.active ?? 0, counts?.lost ?? 0)
}

logProgress(`${plugins} plugins, ${relays} relays: a ramp of ${rampSeconds} s, then ${seconds} s`)
const stack = await startStack()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.life.stop().finally(() => process.exit(130)))
try {
  const rows = await measure(stack)
  console.log(formatTable(rows))
  if (json !== undefined) await writeRows(json, rows)
} finally {
  await stack.life.stop()
}
process.exit(0)
