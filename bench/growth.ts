/**
 * `npm run growth`: what requests and live sessions cost at 10, 100, 1,000 and 10,000 live sessions and 100,000
 * accounts (docs/performance.md). The sessions have real workflows; relays are simulated.
 */
import { Command, InvalidArgumentError } from 'commander'
import pLimit from 'p-limit'
import { type RelaySessionRow, relaySessionColumns } from '../db/relay/sessions.ts'
import { createRelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import { jsonOption } from './arguments.ts'
import { insertAccounts, insertActiveSessions, insertUsers } from './data.ts'
import { comparisons, type GrowthReading, growthFigures } from './growth-figures.ts'
import { databaseBytes, type GrowthBench, readCosts, reportCall } from './growth-readings.ts'
import { callAll } from './load.ts'
import { type Row, single, withRatio, writeRows } from './rows.ts'
import { logProgress, type Stack, startStack, waitUntil, waitUntilAnswering } from './stack.ts'
import { formatGrowth, formatTable } from './table.ts'

const accounts = 100_000
const startersPerSize = 40
const concurrentStartsMax = 32
/** Sizes below show fixed costs, such as the first page of each index. */
const baseSessions = 100
/** `TASK_QUEUE_TYPE_WORKFLOW` of Temporal's API. */
const workflowTasks = 1
/** Simulated relays send no reports except for a measurement. */
const variables = {
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600',
  SVC_RELAY_STOP_GRACE_SECONDS: '3600',
  SVC_TEMPORAL_TASK_QUEUE: 'growth',
}

function readArguments(): { readonly json?: string; readonly sizes: readonly number[] } {
  return new Command('npm run growth --')
    .description('Measures what live sessions cost, at growing numbers of them (docs/performance.md).')
    .addOption(jsonOption)
    .option('--sizes <numbers>', 'numbers of live sessions', toSizes, [10, 100, 1000, 10_000])
    .parse()
    .opts()
}

function toSizes(text: string): number[] {
  const sizes = text.split(',').map(Number)
  if (sizes.some((size) => !Number.isInteger(size) || size < 10 || size > 20_000))
    throw new InvalidArgumentError('Use whole numbers from 10 to 20000, separated by commas.')
  return sizes.toSorted((a, b) => a - b)
}

async function startBench(stack: Stack, sizes: readonly number[]): Promise<GrowthBench> {
  const sessionsMax = Math.max(...sizes)
  const users = await insertUsers(stack, sessionsMax + (sizes.length + 1) * startersPerSize)
  const others = Math.max(0, accounts - users.length)
  logProgress(`filling the database with ${users.length + others} accounts`)
  await insertAccounts(stack, { name: 'a', count: others })
  const api = await stack.start('api/server.ts', variables)
  const worker = await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  const starters = users.splice(sessionsMax)
  return { stack, api, worker, users, starters, sessionIds: [], emptyBytes: await databaseBytes(stack) }
}

/** Adds active sessions and starts their workflows, until there are `size`. Each reports once. */
async function growTo(size: number, { stack, api, users, sessionIds }: GrowthBench): Promise<void> {
  const added = await insertActiveSessions(
    stack,
    users.slice(sessionIds.length, size).map((user) => user.userId),
  )
  const rows = await stack.sql<RelaySessionRow[]>`
    select ${relaySessionColumns(stack.sql)} from relay_sessions where id = any(${added}::uuid[])`
  const { taskQueue } = api.config.temporal
  const workflows = createRelaySessionWorkflows(stack.temporal, {
    taskQueue,
    settings: api.config.relay,
    callMillisMax: 60_000,
    findMaskedEmail: async () => null,
  })
  const limit = pLimit(concurrentStartsMax)
  let started = 0
  const start = async (session: RelaySessionRow) => {
    await workflows.restart(session)
    started += 1
    if (started % 1000 === 0) logProgress(`${started} of ${added.length} workflows are started`)
  }
  await Promise.all(rows.map((session) => limit(start, session)))
  sessionIds.push(...added)
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running'`
  await waitUntil('all workflows are running', async () => (await stack.temporal.workflow.count(query)).count >= size)
  // Requests would otherwise be measured beside the first tasks of these workflows.
  await waitUntil('all workflows have begun', async () => (await countWaitingTasks(stack, taskQueue)) === 0, 1800)
  await callAll(
    added.map((id) => reportCall(api, id)),
    concurrentStartsMax,
    api.pid,
  )
}

/** Workflow tasks that no worker has begun. */
async function countWaitingTasks({ temporal, config }: Stack, taskQueue: string): Promise<number> {
  const { stats } = await temporal.workflowService.describeTaskQueue({
    namespace: config.temporal.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: workflowTasks,
    reportStats: true,
  })
  return Number(stats?.approximateBacklogCount ?? 0)
}

function pointRows(sessions: number, reading: GrowthReading): Row[] {
  return Object.entries(growthFigures).map(([name, figure]) => ({
    ...single({ name: `growth_${name}_${sessions}`, ...figure }, reading[name as keyof GrowthReading]),
    sessions,
  }))
}

function compareSizes(readings: ReadonlyMap<number, GrowthReading>): Row[] {
  const [base, largest] = [baseSessions, Math.max(...readings.keys())]
  const [floor, ours] = [readings.get(base), readings.get(largest)]
  if (floor === undefined || ours === undefined || base === largest) return []
  return comparisons.map(({ of, ...figure }) => {
    const sum = (reading: GrowthReading) => of.reduce((total, name) => total + reading[name], 0)
    const what = `${figure.what}, at ${largest.toLocaleString('en')} against ${base} live sessions`
    return withRatio({ ...figure, what }, { floor: sum(floor), ours: sum(ours), ratio: sum(ours) / sum(floor) })
  })
}

const { json, sizes } = readArguments()
const stack = await startStack()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.life.stop().finally(() => process.exit(130)))
const points: Row[] = []
const readings = new Map<number, GrowthReading>()
try {
  const bench = await startBench(stack, sizes)
  for (const size of sizes) {
    logProgress(`${size} live sessions`)
    await growTo(size, bench)
    // The first readings would show programs that have just started.
    if (readings.size === 0) await readCosts(bench)
    const reading = await readCosts(bench)
    readings.set(size, reading)
    points.push(...pointRows(size, reading))
  }
} finally {
  await stack.life.stop()
}
const compared = compareSizes(readings)
console.log([formatGrowth(points), formatTable(compared)].join('\n\n'))
if (json !== undefined) await writeRows(json, [...points, ...compared])
process.exit(0)
