/**
 * Runs the measurements (`npm run bench`, docs/performance.md). Exits with 1 when one of them could not be carried out.
 */
import { availableParallelism, cpus, loadavg } from 'node:os'
import { readBenchArguments } from './arguments.ts'
import { measureBonding } from './bonding.ts'
import { measureStart, startRegions } from './concurrent-starts.ts'
import { type BenchData, fillDatabase } from './data.ts'
import { figuresOf, type Measurement } from './figures.ts'
import { measureLifecycle } from './history-size.ts'
import { fillLargeTables, measureLargeTables, operatorPassword } from './large-tables.ts'
import { measureMemory } from './memory.ts'
import { measureMetricsPage } from './metrics-page.ts'
import { measureFirstTask, measureReadyAndStop, type RelayBench } from './relay-latency.ts'
import { findTransmit } from './relay-program.ts'
import { measureStage } from './relay-stage.ts'
import { measureVideo } from './relay-video.ts'
import { failed, type Row, writeRows } from './rows.ts'
import { measureSignIn } from './sign-in.ts'
import { largeRegion, logProgress, type Stack, startStack, waitUntilAnswering } from './stack.ts'
import { measureStartRegion, sizedRegions } from './start-region.ts'
import { formatTable } from './table.ts'
import { measureActive, measureHealth, measureSession, type Servers } from './throughput.ts'
import { measureWarmStart } from './warm-start.ts'

const { measurements: selected, json, pairs, networks, isWholeRun } = readBenchArguments(process.argv.slice(2))
const rounds = pairs ?? 5
/** A pair of video takes half a minute. */
const videoRounds = pairs ?? 3

/** Measurements that share running programs. */
interface Group {
  readonly measure: Readonly<Partial<Record<Measurement, () => Promise<Row[]>>>>
  stop(): Promise<unknown>
}

type StartGroup = (stack: Stack, data: BenchData) => Promise<Group>

const startWithoutWorker: StartGroup = async (stack, data) => {
  const api = await stack.start('api/server.ts', {
    SVC_TEMPORAL_TASK_QUEUE: 'bench-without-worker',
    SVC_REGIONS: JSON.stringify([largeRegion, ...startRegions]),
  })
  const floors = await stack.start('bench/floors.ts')
  await Promise.all([waitUntilAnswering(api, '/api/v1/capacity/status'), waitUntilAnswering(floors, '/bare')])
  const servers: Servers = { api, floors, rounds }
  return {
    measure: {
      active: () => measureActive(servers, data),
      health: () => measureHealth(servers, data),
      session: () => measureSession(servers, data),
      start: () => measureStart(servers, stack.sql, data),
      'sign-in': () => measureSignIn(api, stack.sql),
    },
    stop: () => Promise.all([api.stop(), floors.stop()]),
  }
}

const startWithSizedRegions: StartGroup = async (stack, data) => {
  const api = await stack.start('api/server.ts', {
    SVC_TEMPORAL_TASK_QUEUE: 'bench-start-region',
    SVC_REGIONS: JSON.stringify(sizedRegions),
  })
  await waitUntilAnswering(api, '/api/v1/capacity/status')
  return {
    measure: { 'start-region': () => measureStartRegion({ stack, api, data, rounds }) },
    stop: () => api.stop(),
  }
}

/** Longer than the run: simulated relays send no health reports except for a measurement. */
const longTimeouts = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600', SVC_RELAY_STOP_GRACE_SECONDS: '3600' }

const startWithWorker: StartGroup = async (stack, data) => {
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench' }
  const api = await stack.start('api/server.ts', variables)
  const worker = await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  const bench: RelayBench = { stack, api, data, rounds }
  return {
    measure: {
      metrics: () => measureMetricsPage(api),
      stop: () => measureReadyAndStop(bench),
      'first-task': () => measureFirstTask(bench),
      lifecycle: () => measureLifecycle(bench),
    },
    stop: () => Promise.all([api.stop(), worker.stop()]),
  }
}

const startWithEmptyWorker: StartGroup = async (stack, data) => {
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench-memory' }
  const api = await stack.start('api/server.ts', variables)
  const worker = await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  await api.stop()
  return { measure: { memory: () => measureMemory(stack, worker, data) }, stop: () => worker.stop() }
}

const startWithLocalRelays: StartGroup = async (stack) => ({
  measure: {
    warm: async () => (findTransmit('warm', isWholeRun) === undefined ? [] : measureWarmStart(stack, rounds)),
  },
  stop: async () => {},
})

const startWithLargeTables: StartGroup = async (stack, data) => {
  const api = await stack.start('api/server.ts', {
    ...longTimeouts,
    SVC_TEMPORAL_TASK_QUEUE: 'bench-large',
    SVC_OPERATOR_PASSWORD: operatorPassword,
  })
  await waitUntilAnswering(api, '/api/v1/capacity/status')
  await fillLargeTables(stack.sql)
  return { measure: { large: () => measureLargeTables(api, data) }, stop: () => api.stop() }
}

const groups: readonly { readonly names: readonly Measurement[]; readonly start: StartGroup }[] = [
  { names: ['active', 'health', 'session', 'start', 'sign-in'], start: startWithoutWorker },
  { names: ['start-region'], start: startWithSizedRegions },
  { names: ['metrics', 'stop', 'first-task', 'lifecycle'], start: startWithWorker },
  { names: ['memory'], start: startWithEmptyWorker },
  { names: ['warm'], start: startWithLocalRelays },
  // Last: it adds rows to every table.
  { names: ['large'], start: startWithLargeTables },
]

const rows: Row[] = []

/** Measures, and adds the rows. A measurement that fails adds rows with the reason, and the next one goes on. */
async function measure(names: readonly Measurement[], run: () => Promise<Row[]>): Promise<void> {
  try {
    rows.push(...(await run()))
  } catch (error) {
    console.error(`[bench] ${names.join(', ')}: failed:`, error)
    rows.push(...names.flatMap(figuresOf).map((figure) => failed(figure, error)))
  }
}

async function runGroup(names: readonly Measurement[], start: StartGroup, stack: Stack, data: BenchData) {
  if (names.length === 0) return
  let group: Group | undefined
  await measure(names, async () => {
    group = await start(stack, data)
    return []
  })
  for (const name of names) {
    const run = group?.measure[name]
    if (run) await measure([name], run)
  }
  await group?.stop()
}

/** Starts Postgres and Temporal, and fills the database. */
async function prepareStack(): Promise<{ stack: Stack; data: BenchData }> {
  const stack = await startStack()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void stack.life.stop().finally(() => process.exit(130)))
  try {
    return { stack, data: await fillDatabase(stack) }
  } catch (error) {
    await stack.life.stop()
    throw error
  }
}

async function runWithStack(names: readonly Measurement[]): Promise<void> {
  let prepared: Awaited<ReturnType<typeof prepareStack>> | undefined
  await measure(names, async () => {
    prepared = await prepareStack()
    return []
  })
  if (prepared === undefined) return
  const { stack, data } = prepared
  for (const group of groups) {
    const chosen = group.names.filter((name) => names.includes(name))
    await runGroup(chosen, group.start, stack, data)
  }
  await stack.life.stop()
}

logProgress(
  `${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.version}, load ${loadavg()[0]}`,
)
/** Those that stream through one relay. */
const streaming: Readonly<Partial<Record<Measurement, (transmit: string) => Promise<Row[]>>>> = {
  video: async (transmit) => [
    ...(await measureVideo(transmit, videoRounds)),
    ...(await measureStage(transmit, videoRounds)),
  ],
  bonding: (transmit) => measureBonding(transmit, networks),
}
const namesWithStack = selected.filter((name) => streaming[name] === undefined)
if (namesWithStack.length > 0) await runWithStack(namesWithStack)
for (const name of selected) {
  const run = streaming[name]
  if (run === undefined) continue
  await measure([name], async () => {
    const transmit = findTransmit(name, isWholeRun)
    return transmit === undefined ? [] : run(transmit)
  })
}
console.log(formatTable(rows))
if (json !== undefined) await writeRows(json, rows)
process.exit(rows.some((row) => row.error !== undefined) ? 1 : 0)
