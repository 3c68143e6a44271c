/**
 * `npm run bench`: measures the service against floors on this machine, in pairs, and prints a table. `npm run bench -- NAME …`
 * runs some of the measurements only. A missed target is shown in the table; the exit code is 0.
 */
import { availableParallelism, cpus, loadavg } from 'node:os'
import { measureLifecycle } from './lifecycle.ts'
import { type Machine, say, startMachine, untilAnswering } from './machine.ts'
import { measureMemory } from './memory.ts'
import { measureMetricsPage } from './metrics-page.ts'
import type { Row } from './pairs.ts'
import { measureActive, measureHealth, measureSession, type Servers } from './requests.ts'
import { fill, type Rows } from './rows.ts'
import { measureSignIn } from './sign-in.ts'
import { measureStart } from './starts.ts'
import { formatTable } from './table.ts'
import { measureFirstTask, measureReadyAndStop, type WorkflowBench } from './workflows.ts'

/** Measurements without a worker, with a worker, and with a worker that has not run anything yet. */
const withoutWorker = ['active', 'health', 'session', 'start', 'sign-in'] as const
const withWorker = ['metrics', 'stop', 'first-task', 'lifecycle'] as const
const names = [...withoutWorker, ...withWorker, 'memory'] as const
type Name = (typeof names)[number]

const requestedNames = process.argv.slice(2)
const unknown = requestedNames.filter((name) => !names.includes(name as Name))
if (unknown.length > 0) {
  console.error(`Unknown measurement: ${unknown.join(', ')}. Use one of: ${names.join(', ')}.`)
  process.exit(2)
}
const selectedNames = new Set<Name>(requestedNames.length === 0 ? names : (requestedNames as Name[]))

async function runWithoutWorker(machine: Machine, rows: Rows): Promise<Row[]> {
  const selected = withoutWorker.filter((name) => selectedNames.has(name))
  if (selected.length === 0) return []
  const api = await machine.start('api/server.ts', { SVC_TEMPORAL_TASK_QUEUE: 'bench-without-worker' })
  const floors = await machine.start('bench/floors.ts')
  await Promise.all([untilAnswering(api, '/api/v1/capacity/status'), untilAnswering(floors, '/bare')])
  const servers: Servers = { api, floors }
  const measure = {
    active: () => measureActive(servers, rows),
    health: () => measureHealth(servers, rows),
    session: () => measureSession(servers, rows),
    start: () => measureStart(servers, machine.sql, rows),
    'sign-in': () => measureSignIn(api, machine.sql),
  }
  const results: Row[] = []
  for (const name of selected) results.push(...(await measure[name]()))
  await Promise.all([api.stop(), floors.stop()])
  return results
}

/** Longer than the run: simulated relays send no health reports except for a measurement. */
const longTimeouts = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600', SVC_RELAY_STOP_GRACE_SECONDS: '3600' }

async function runWithWorker(machine: Machine, rows: Rows): Promise<Row[]> {
  const selected = withWorker.filter((name) => selectedNames.has(name))
  if (selected.length === 0) return []
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench' }
  const api = await machine.start('api/server.ts', variables)
  const worker = await machine.start('bench/paper-worker.ts', variables)
  await untilAnswering(api, '/health')
  const bench: WorkflowBench = { machine, api, rows }
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

async function runMemory(machine: Machine, rows: Rows): Promise<Row[]> {
  if (!selectedNames.has('memory')) return []
  const variables = { ...longTimeouts, SVC_TEMPORAL_TASK_QUEUE: 'bench-memory' }
  const api = await machine.start('api/server.ts', variables)
  const worker = await machine.start('bench/paper-worker.ts', variables)
  await untilAnswering(api, '/health')
  await api.stop()
  const results = await measureMemory(machine, worker, rows)
  await worker.stop()
  return results
}

say(`${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.version}, load ${loadavg()[0]}`)
const machine = await startMachine()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void machine.life.stop().finally(() => process.exit(130)))
const results: Row[] = []
try {
  const rows = await fill(machine)
  for (const run of [runWithoutWorker, runWithWorker, runMemory]) results.push(...(await run(machine, rows)))
} finally {
  if (results.length > 0) console.log(formatTable(results))
  await machine.life.stop()
}
process.exit(0)
