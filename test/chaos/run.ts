/**
 * `npm run chaos -- --seed N --seconds S --json FILE`: actors use the service while its processes are killed, paused
 * and cut off, and while its relays cannot reach it. Then the invariants are checked. Exits with 1 when one is
 * violated, and keeps the folder with logs, journal and tables.
 */
import { chmod, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Lifecycle } from '../../platform/lifecycle.ts'
import { createLog } from '../../platform/log.ts'
import { createRandom } from '../support/random.ts'
import { startCloud } from './cloud.ts'
import { Driver } from './driver.ts'
import { collectEvidence, type Evidence, hasSettled } from './evidence.ts'
import { findViolations, type Violation } from './invariants.ts'
import { Journal } from './journal.ts'
import { createPlan } from './plan.ts'
import { SimulatedRelays } from './relays.ts'
import { createReport, summarize, writeReport } from './report.ts'
import { startService } from './service.ts'

const progressMillis = 5_000
/** Actions that wait for the service end when it is whole again. */
const finishSecondsMax = 180
const settleSecondsMax = 240
/**
 * The service is whole and without requests for longer than any deadline may be late, so that it has to end relays
 * itself.
 */
const untouchedSeconds = 45

const { values } = parseArgs({
  options: { seed: { type: 'string' }, seconds: { type: 'string' }, json: { type: 'string' } },
})
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000))
const seconds = Number(values.seconds ?? 60)
if (!Number.isInteger(seed) || !(seconds >= 10)) {
  process.stderr.write('usage: npm run chaos -- [--seed INTEGER] [--seconds AT_LEAST_10] [--json FILE]\n')
  process.exit(2)
}

const startedAt = Date.now()
const print = (text: string) => {
  const elapsed = Math.round((Date.now() - startedAt) / 1000)
  process.stderr.write(`[chaos, ${elapsed} s] ${text}\n`)
}

const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    if (interrupt.signal.aborted) process.exit(130)
    print(`${signal}: stopping, once more to stop at once`)
    interrupt.abort()
  })

const life = new Lifecycle(createLog('chaos', 'warn'), 60_000)
const journal = new Journal()
const folder = await realpath(await mkdtemp(join(tmpdir(), 'relay-chaos-')))
// Accessible to the unprivileged user of the embedded Postgres when this process is root.
await chmod(folder, 0o755)
print(`seed ${seed}, ${seconds} s, in ${folder}`)

let code = 0
try {
  const violations = await run()
  code = violations === undefined ? 130 : violations.length > 0 ? 1 : 0
} catch (error) {
  print(`failed: ${(error as Error).stack}`)
  code = interrupt.signal.aborted ? 130 : 1
}
await life.stop()
if (code === 1) print(`logs, journal and tables are in ${folder}`)
else await rm(folder, { recursive: true, force: true, maxRetries: 5 })
process.exit(code)

/** @returns the violations; undefined when the run was interrupted. */
async function run(): Promise<Violation[] | undefined> {
  const relays = new SimulatedRelays(journal, interrupt.signal)
  const cloud = await startCloud({
    onCreated: (instance) => relays.boot(instance),
    onEnded: (instance) => relays.end(instance),
  })
  life.hold('cloud', cloud, (it) => it.close())
  const onCrash = (text: string) => {
    if (interrupt.signal.aborted) return
    print(`ended by itself: ${text}`)
    journal.crashes.push(text)
  }
  const service = await startService({ life, folder, cloudUrl: cloud.url, onCrash })
  const driver = new Driver({ service, cloud, relays, journal, signal: interrupt.signal })
  const progress = setInterval(() => printProgress(relays.count), progressMillis)
  try {
    await driver.prepare()
    print('the service is ready, the accounts exist, and the stream plays')
    await driver.run(createPlan(createRandom(seed), seconds))
    if (interrupt.signal.aborted) return undefined
    print('waiting for the last actions and faults')
    await driver.finish(finishSecondsMax)
    print(`waiting ${untouchedSeconds} s for deadlines`)
    await sleep(untouchedSeconds * 1000, undefined, { signal: interrupt.signal }).catch(() => {})
    await driver.stopAll()
    const hasEnded = await settle(() => hasSettled(service, cloud))
    print(hasEnded ? 'settled' : `has not settled after ${settleSecondsMax} s`)
  } finally {
    clearInterval(progress)
    await driver.end()
  }
  if (interrupt.signal.aborted) return undefined
  const evidence = await collectEvidence(service, cloud, journal)
  const violations = [
    ...findViolations(evidence),
    ...driver.failures.map((text) => ({ invariant: 'the driver ends all its actions', text })),
  ]
  const report = createReport({ seed, seconds }, evidence, violations)
  if (values.json) await writeReport(report, values.json)
  if (violations.length > 0) await keepEvidence(evidence)
  process.stdout.write(`${summarize(report)}\n`)
  return violations
}

function printProgress(relays: number): void {
  const { accepted, faults, unexpected } = journal
  const counts = ['start', 'stop', 'webhook', 'report'].map((kind) => `${accepted[kind] ?? 0} ${kind}s`)
  const last = faults.at(-1)
  const fault = last ? `, last ${last.kind} ${last.target} ${Math.round((last.until - last.from) / 100) / 10} s` : ''
  const surprises = unexpected.size > 0 ? `, ${unexpected.size} unexpected replies` : ''
  print(`${counts.join(', ')}, ${relays} simulated relays, ${faults.length} faults${fault}${surprises}`)
}

async function settle(hasEnded: () => Promise<boolean>): Promise<boolean> {
  const deadline = Date.now() + settleSecondsMax * 1000
  while (!interrupt.signal.aborted && Date.now() < deadline) {
    if (await hasEnded()) return true
    await sleep(1_000)
  }
  return false
}

/** The tables and the journal as JSON, beside the logs and the data of Postgres. */
async function keepEvidence({ journal: kept, ...tables }: Evidence): Promise<void> {
  await writeFile(join(folder, 'tables.json'), JSON.stringify(tables, null, 1))
  const maps = { deliveries: [...kept.deliveries.values()], sightings: Object.fromEntries(kept.sightings) }
  await writeFile(
    join(folder, 'journal.json'),
    JSON.stringify({ ...kept, ...maps, unexpected: [...kept.unexpected] }, null, 1),
  )
}
