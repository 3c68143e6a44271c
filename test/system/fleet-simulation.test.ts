/**
 * A fleet of up to 200 relays for some minutes, with a provider that fails in many ways, relays that fall silent and
 * die, and users who start and stop them at random. FLEET_SIMULATION_SEED repeats the decisions of another run.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import pLimit from 'p-limit'
import { beforeAll, describe, expect, test } from 'vitest'
import { isOutage } from '../../db/connection.ts'
import { triggerJob } from '../../db/operations/jobs.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import { warmInstancesWorkflowId } from '../../workflows/messages.ts'
import { atEnd } from '../support/at-end.ts'
import { startNameServer, zone } from '../support/name-server.ts'
import { createRandom } from '../support/random.ts'
import { eventually, startService, startTestWorker, type TestService } from '../support/relays.ts'
import { findAddressesLeft, watchAddresses } from './fleet-address-rules.ts'
import { cloudSettings } from './fleet-addresses.ts'
import { createSimulatedProvider, type SimulatedProvider } from './fleet-provider.ts'
import { type Reception, recordReceptions } from './fleet-receptions.ts'
import { createSimulatedRelays, type SimulatedRelays } from './fleet-relays.ts'
import {
  findBrokenRows,
  findBrokenTransitions,
  findBrokenUsage,
  findDoubles,
  findLeftovers,
  findUnfinishedStarts,
  findWronglyGone,
  sumUsage,
} from './fleet-rules.ts'
import { coldRegion, decideSteps, type Step, warmRegion } from './fleet-steps.ts'
import { createSimulatedUsers, type SimulatedUsers } from './fleet-users.ts'

const seed = Number(process.env.FLEET_SIMULATION_SEED ?? 1)
/** `npm run soak -- simulation` takes more. */
const stepsCount = Number(process.env.FLEET_SIMULATION_STEPS ?? 3_000)
const stepMillis = 9
/** Steps that are carried out at the same time. */
const concurrentStepsMax = 48
/** Each part of settling takes some ten seconds, and longer on a busy machine. */
const settleSecondsMax = 240

const warm: Readonly<Record<string, number>> = { [warmRegion]: 8, [coldRegion]: 0 }
const simulatedRegions = [
  { region: warmRegion, capacity: 140, zones: 3, lagSecondsMax: 3, hasClientTokens: true, canMoveAddresses: true },
  { region: coldRegion, capacity: 60, zones: 2, lagSecondsMax: 1, hasClientTokens: false, canMoveAddresses: false },
]

const variables = {
  SVC_REGIONS: JSON.stringify(
    simulatedRegions.map(({ region, capacity, canMoveAddresses }) => ({
      region,
      display_name: region,
      ...cloudSettings(canMoveAddresses),
      stable_address: true,
      capacity,
      warm: warm[region],
    })),
  ),
  SVC_HETZNER_TOKEN: 'of-no-cloud',
  SVC_FLEET_NAME: 'simulation',
  SVC_RELAY_DOMAIN: zone,
  SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '20',
  SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
  SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '8',
  // Longer than 22 s, so that the relay time of a silent relay ends before its session.
  SVC_RELAY_GRACE_SECONDS: '25',
  SVC_RELAY_REPLACEMENT_SECONDS: '25',
  SVC_RELAY_STOP_GRACE_SECONDS: '2',
}

let service: TestService
let worker: Lifecycle
let providers: readonly SimulatedProvider[]
let relays: SimulatedRelays
let users: SimulatedUsers
let findBrokenAddresses: () => Promise<string[]>
let listReceptions: () => Promise<readonly Reception[]>
const unexpected = new Set<string>()
let liveMax = 0

const print = (text: string) => void process.stderr.write(`[fleet] ${text}\n`)
const startWorker = () => startTestWorker(service.api, (_, region) => providerOf(region) as SimulatedProvider)
const providerOf = (region: string) => providers.find((provider) => provider.region === region)

beforeAll(async () => {
  print(`seed ${seed}: FLEET_SIMULATION_SEED=${seed} repeats these decisions`)
  const random = createRandom(seed)
  providers = simulatedRegions.map((region) => createSimulatedProvider(region, createRandom(random.next() * 2 ** 32)))
  const names = await startNameServer()
  atEnd(() => names.close())
  const nameServer = {
    SVC_DNS_SERVER: `127.0.0.1:${names.port}`,
    SVC_DNS_KEY: `${names.key.name}:${names.key.secret.toString('base64')}`,
  }
  service = await startService({ variables: { ...variables, ...nameServer }, worker: false })
  findBrokenAddresses = watchAddresses(service.api.sql, providers)
  listReceptions = await recordReceptions(service.api.sql)
  const { api } = service
  worker = await startWorker()
  const [masterSecret = ''] = api.services.config.relayAuthSecrets
  const onUnexpected = (text: string) => void unexpected.add(text)
  relays = createSimulatedRelays({ client: api, masterSecret, providers, onUnexpected })
  users = await createSimulatedUsers(service, onUnexpected)
  const watching = startWatching()
  const startedAt = performance.now()
  try {
    await runSteps(decideSteps(random, stepsCount))
    print(`${stepsCount} steps in ${seconds(startedAt)} s, ${users.accepted.size} sessions, up to ${liveMax} live`)
    await settle()
  } finally {
    await watching.stop()
  }
  print(`settled after ${seconds(startedAt)} s`)
  await printSummary()
}, 1_000_000)

const seconds = (since: number) => Math.round((performance.now() - since) / 1000)

async function runSteps(steps: readonly Step[]): Promise<void> {
  const limit = pLimit(concurrentStepsMax)
  const startedAt = performance.now()
  const running: Promise<void>[] = []
  for (const [index, step] of steps.entries()) {
    const ahead = startedAt + index * stepMillis - performance.now()
    if (ahead > 0) await sleep(ahead)
    while (limit.pendingCount > 0) await sleep(1)
    running.push(
      limit(async () => {
        await execute(step)
      }).catch((error: unknown) => void unexpected.add(`${step.type}: ${error}`)),
    )
    if (index % 1000 === 999) print(`${index + 1} steps after ${seconds(startedAt)} s`)
  }
  await Promise.all(running)
}

async function execute(step: Step): Promise<unknown> {
  switch (step.type) {
    case 'report':
      return void relays.reportNext()
    case 'report_early':
      return void relays.reportAt(step.position)
    case 'silence':
      return relays.silence(step.position, step.seconds)
    case 'lose':
      return relays.lose(step.position)
    case 'hang':
      return relays.hang(step.position)
    case 'restart':
      return relays.restart(step.position)
    case 'start':
      return users.start(step.slot, step.region)
    case 'start_twice':
      return users.startTwice(step.slot, step.region)
    case 'start_and_stop':
      await users.start(step.slot, step.region)
      await sleep(step.seconds * 1000)
      return users.stop(step.slot, true)
    case 'stop':
    case 'stop_now':
      return users.stop(step.slot, step.type === 'stop_now')
    case 'start_again':
      return users.startAgain(step.position)
    case 'disconnect':
      return users.disconnect(step.position)
    case 'drain':
    case 'resume':
      return users.setDrained(step.region, step.type === 'drain')
    case 'trouble':
      return providerOf(step.region)?.startTrouble(step.trouble, step.seconds)
    case 'sweep':
      return triggerJob(service.api.sql, 'sweep_orphans')
    case 'restart_worker':
      await worker.stop()
      worker = await startWorker()
  }
}

/** Checks the rules of the rows four times a second. */
function startWatching(): { stop(): Promise<void> } {
  let isStopped = false
  const watch = async () => {
    while (!isStopped) {
      // A busy machine may exceed the time limits of a statement.
      await checkRows().catch((error: unknown) => isOutage(error) || unexpected.add(String(error)))
      await sleep(250)
    }
  }
  const watched = watch()
  return {
    stop: () => {
      isStopped = true
      return watched
    },
  }
}

async function checkRows(): Promise<void> {
  const { sql } = service.api
  for (const broken of await findBrokenRows(sql, providers)) unexpected.add(broken)
  for (const broken of await findWronglyGone(sql, providers)) unexpected.add(broken)
  for (const broken of await findBrokenAddresses()) unexpected.add(broken)
  const [row] = await sql<{ live: number }[]>`
    select count(*)::int as live from relay_sessions where state <> 'stopped'`
  liveMax = Math.max(liveMax, row?.live ?? 0)
}

/** Ends the faults and all relays, and waits until nothing is left to do. */
async function settle(): Promise<void> {
  const { sql } = service.api
  for (const provider of providers) provider.endFaults()
  relays.restartAll()
  const reporting = setInterval(() => relays.reportDue(), 50)
  const countSessions = async (states: readonly string[]) =>
    Number((await sql`select count(*) from relay_sessions where state = any(${states}::text[])`)[0]?.count)
  try {
    for (const { region } of providers) await users.setDrained(region, false)
    print('the faults have ended')
    await eventually(
      () => countSessions(['provisioning']),
      (count) => count === 0,
      settleSecondsMax,
    )
    print('no session is provisioning')
    await users.stopAll()
    await eventually(
      () => countSessions(['provisioning', 'active', 'grace']),
      (count) => count === 0,
      settleSecondsMax,
    )
    print('all sessions are stopped')
    await eventually(
      async () => {
        await triggerJob(sql, 'sweep_orphans')
        await sleep(1000)
        return [...(await findLeftovers(sql, providers, warm)), ...(await findAddressesLeft(sql, providers))]
      },
      (left) => left.length === 0,
      settleSecondsMax,
      // The tests show what is left.
    ).catch(() => undefined)
  } finally {
    clearInterval(reporting)
  }
}

async function printSummary(): Promise<void> {
  for (const { region, instances, faults } of providers)
    print(`${region}: ${instances.length} instances, ${JSON.stringify(Object.fromEntries(faults))}`)
  print(JSON.stringify({ ...relays.counts, ...Object.fromEntries(users.replies) }))
  const rows = await service.api.sql<{ text: string; count: number }[]>`
    select format('%s → %s: %s', from_state, to_state, reason) as text, count(*)::int as count
    from relay_transitions group by 1 order by 2 desc`
  const warnings = service.api.logged.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40)
  print([...new Set(warnings.map(({ msg, err }) => `${msg}: ${err?.code} ${err?.message}`))].join('; '))
  print(rows.map(({ text, count }) => `${text} ${count}`).join(', '))
}

/** An error, or a deadlock, which is logged as an outage of Postgres. */
const isError = (line: string): boolean => JSON.parse(line).level >= 50 || line.includes('40P01')

describe('a fleet with failing providers, silent relays and impatient users', () => {
  test('gets no unexpected reply and breaks no rule at any moment', () => {
    expect([...unexpected].slice(0, 20)).toEqual([])
    expect(service.api.logged.filter((line) => isError(line)).slice(0, 20)).toEqual([])
  })

  test('never has more instances in a region than its capacity', () => {
    expect(providers.flatMap(({ objections }) => objections)).toEqual([])
  })

  test('makes only legal transitions, and each version once', async () => {
    expect(await findBrokenTransitions(service.api.sql)).toEqual([])
  })

  test('ends each accepted start with a reason', async () => {
    expect(users.accepted.size).toBeGreaterThan(100)
    expect(await findUnfinishedStarts(service.api.sql, users.accepted)).toEqual([])
  })

  test('never has two instances of a session of which neither is retired', async () => {
    expect(await findDoubles(service.api.sql, providers)).toEqual([])
  })

  test('leaves no instance and no row of one but the warm instances', async () => {
    expect(await findLeftovers(service.api.sql, providers, warm)).toEqual([])
  })

  test('leaves no address but those of the warm instances, and no name that leads anywhere', async () => {
    expect(await findAddressesLeft(service.api.sql, providers)).toEqual([])
  })

  test('charges each session from its first transition to active until its end, and shows the sum', async () => {
    const { sql, services } = service.api
    const { healthTimeoutSeconds, healthIntervalSeconds } = services.config.relay
    const limits = { healthTimeoutSeconds, healthIntervalSeconds, receptions: await listReceptions() }
    const { broken, shortened } = await findBrokenUsage(sql, limits)
    print(`${shortened} sessions were charged for less than their duration`)
    expect(broken).toEqual([])
    const sums = await sumUsage(sql)
    const shown = await users.listUsage()
    expect(shown.filter(({ userId, seconds }) => seconds !== (sums.get(userId) ?? 0))).toEqual([])
    expect(shown.filter(({ activeSessions }) => activeSessions > 0)).toEqual([])
  })

  test('ends the workflow of each session', async () => {
    const { temporal, config } = service.api.services
    const query = `TaskQueue = '${config.temporal.taskQueue}' and ExecutionStatus = 'Running'`
    const listRunning = async () => {
      const ids: string[] = []
      for await (const { workflowId } of temporal.workflow.list({ query })) ids.push(workflowId)
      return ids.toSorted()
    }
    await eventually(listRunning, (ids) => ids.every((id) => id === warmInstancesWorkflowId(warmRegion)))
  })
})
