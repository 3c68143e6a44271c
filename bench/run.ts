/**
 * `npm run bench`: measures the service against floors on this machine, in pairs, and prints a table. `npm run bench -- NAME …`
 * runs some of the measurements only. A missed target is shown in the table; the exit code is 0.
 */
import { availableParallelism, cpus, loadavg } from 'node:os'
import { measureStart } from './concurrent-starts.ts'
import { type BenchData, fillDatabase } from './data.ts'
import { measureLifecycle } from './history-size.ts'
import { measureMemory } from './memory.ts'
import { measureMetricsPage } from './metrics-page.ts'
import type { Row } from './pairs.ts'
import { measureFirstTask, measureReadyAndStop, type RelayBench } from './relay-latency.ts'
import { measureVideo } from './relay-video.ts'
import { measureSignIn } from './sign-in.ts'
import { logProgress, type Stack, startStack, waitUntilAnswering } from './stack.ts'
import { formatTable } from './table.ts'
import { measureActive, measureHealth, measureSession, type Servers } from './throughput.ts'
import { measureWarmStart } from './warm-start.ts'

/** Measurements without a worker, with a worker, and with a worker that has not run anything yet. */
const withoutWorker = ['active', 'health', 'session', 'start', 'sign-in'] as const
const withWorker = ['metrics', 'stop', 'first-task', 'lifecycle'] as const
const names = [...withoutWorker, ...withWorker, 'memory', 'warm', 'video'] as const
type Name = (typeof names)[number]

const requestedNames = process.argv.slice(2)
const unknown = requestedNames.filter((name) => !names.includes(name as Name))
if (unknown.length > 0) {
  console.error(`Unknown measurement: ${unknown.join(', ')}. Use one of: ${names.join(', ')}.`)
  process.exit(2)
}
const selectedNames = new Set<Name>(requestedNames.length === 0 ? names : (requestedNames as Name[]))

async function runWithoutWorker(stack: Stack, data: BenchData): Promise<Row[]> {
  const selected = withoutWorker.filter((name) => selectedNames.has(name))
  if (selected.length === 0) return []
  const api = await stack.start('api/server.ts', { SVC_TEMPORAL_TASK_QUEUE: 'bench-without-worker' })
  const floors = await stack.start('bench/floors.ts')
  await Promise.all([waitUntilAnswering(api, '/api/v1/capacity/status'), waitUntilAnswering(floors, '/bare')])
  const servers: Servers = { api, floors }
  const measure = {
    active: () => measureActive(servers, data),
    health: () => measureHealth(servers, data),
    session: () => measureSession(servers, data),
    start: () => measureStart(servers, stack.sql, data),
    'sign-in': () => measureSignIn(api, stack.sql),
  }
  const results: Row[] = []
  for (const name of selected) results.push(...(await measure[name]()))
  await Promise.all([api.stop(), floors.stop()])
  return results
}

/** Longer than the run: simulated relays send no health reports except for a measurement. */
const longTimeouts = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600', SVC_RELAY_STOP_GRACE_SECONDS: '3600' }

async function runWithWorker(stack: Stack, data: BenchData): Promise<Row[]> {
  const selected = withWorker.filter((name) => selectedNames.has(name))
  if (selected.length === 0) return []
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench' }
  const api = await stack.start('api/server.ts', variables)
  const worker = await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  const bench: RelayBench = { stack, api, data }
  const measure = {
    metrics: () => measureMetricsPage(api),
    stop: () => measureReadyAndStop(bench),
    'first-task': () => measureFirstTask(bench),
    lifecycle: () => measureLifecycle(bench),
  }
  const results: Row[] = []
  for (const name of selected) results.push(...(await measure[name]()))
  await Promise.all([api.stop(), worker.stop()])
  return results
}

async function runMemory(stack: Stack, data: BenchData): Promise<Row[]> {
  if (!selectedNames.has('memory')) return []
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench-memory' }
  const api = await stack.start('api/server.ts', variables)
  const worker = await stack.start('bench/fake-relay-worker.ts', variables)
  await waitUntilAnswering(api, '/health')
  await api.stop()
  const results = await measureMemory(stack, worker, data)
  await worker.stop()
  return results
}

logProgress(
  `${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.version}, load ${loadavg()[0]}`,
)
if (selectedNames.size === 1 && selectedNames.has('video')) {
  console.log(formatTable(await measureVideo()))
  process.exit(0)
}
const stack = await startStack()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void stack.life.stop().finally(() => process.exit(130)))
const results: Row[] = []
try {
  const data = await fillDatabase(stack)
  for (const run of [runWithoutWorker, runWithWorker, runMemory]) results.push(...(await run(stack, data)))
  if (selectedNames.has('warm')) results.push(...(await measureWarmStart(stack, data)))
  if (selectedNames.has('video')) results.push(...(await measureVideo()))
} finally {
  if (results.length > 0) console.log(formatTable(results))
  await stack.life.stop()
}
process.exit(0)
