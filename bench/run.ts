/**
 * `npm run bench`: measures the service against floors on this machine, in pairs, and prints a table. Names given behind
 * `--` choose some of the measurements. It measures and does not judge: a missed target is shown, and the exit code is 0.
 */
import { availableParallelism, cpus, loadavg } from 'node:os'
import { type Actors, measureFirstTask, measureReadyAndStop } from './actors.ts'
import { measureLifecycle } from './lifecycle.ts'
import { type Machine, say, startMachine, untilAnswering } from './machine.ts'
import { measureMemory } from './memory.ts'
import { measureMetricsPage } from './metrics-page.ts'
import type { Row } from './pairs.ts'
import { measureActive, measureHealth, measureSession, type Servers } from './requests.ts'
import { fill, type Rows } from './rows.ts'
import { measureSignIn } from './sign-in.ts'
import { measureStart } from './starts.ts'
import { tableOf } from './table.ts'

/** Those that need no worker, those that need one, and the one that needs an empty one. */
const withoutWorker = ['active', 'health', 'session', 'start', 'sign-in'] as const
const withWorker = ['metrics', 'stop', 'first-task', 'lifecycle'] as const
const names = [...withoutWorker, ...withWorker, 'memory'] as const
type Name = (typeof names)[number]

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !names.includes(name as Name))
if (unknown.length > 0) {
  console.error(`There is no measurement called ${unknown.join(', ')}. There are: ${names.join(', ')}.`)
  process.exit(2)
}
const chosen = new Set<Name>(asked.length === 0 ? names : (asked as Name[]))

async function runWithoutWorker(machine: Machine, rows: Rows): Promise<Row[]> {
  const wanted = withoutWorker.filter((name) => chosen.has(name))
  if (wanted.length === 0) return []
  const api = await machine.start('api/server.ts', { SVC_TEMPORAL_TASK_QUEUE: 'nobody-works' })
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
  const found: Row[] = []
  for (const name of wanted) found.push(...(await measure[name]()))
  await Promise.all([api.stop(), floors.stop()])
  return found
}

/** Long enough that nothing ends by itself meanwhile: relays on paper report only when it is measured. */
const patient = { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '3600', SVC_RELAY_STOP_GRACE_SECONDS: '3600' }

async function runWithWorker(machine: Machine, rows: Rows): Promise<Row[]> {
  const wanted = withWorker.filter((name) => chosen.has(name))
  if (wanted.length === 0) return []
  const variables = { ...patient, SVC_TEMPORAL_TASK_QUEUE: 'bench' }
  const api = await machine.start('api/server.ts', variables)
  const worker = await machine.start('bench/paper-worker.ts', variables)
  await untilAnswering(api, '/health')
  const actors: Actors = { machine, api, rows }
  const measure = {
    metrics: () => measureMetricsPage(api),
    stop: () => measureReadyAndStop(actors),
    'first-task': () => measureFirstTask(actors),
    lifecycle: () => measureLifecycle(actors),
  }
  const found: Row[] = []
  for (const name of wanted) found.push(...(await measure[name]()))
  await Promise.all([api.stop(), worker.stop()])
  return found
}

async function runMemory(machine: Machine, rows: Rows): Promise<Row[]> {
  if (!chosen.has('memory')) return []
  const variables = { ...patient, SVC_TEMPORAL_TASK_QUEUE: 'many' }
  const api = await machine.start('api/server.ts', variables)
  const worker = await machine.start('bench/paper-worker.ts', variables)
  await untilAnswering(api, '/health')
  await api.stop()
  const found = await measureMemory(machine, worker, rows)
  await worker.stop()
  return found
}

say(`${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.version}, load ${loadavg()[0]}`)
const machine = await startMachine()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void machine.life.stop().finally(() => process.exit(130)))
const found: Row[] = []
try {
  const rows = await fill(machine)
  for (const run of [runWithoutWorker, runWithWorker, runMemory]) found.push(...(await run(machine, rows)))
} finally {
  if (found.length > 0) console.log(tableOf(found))
  await machine.life.stop()
}
process.exit(0)
