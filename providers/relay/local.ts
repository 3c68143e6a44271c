/**
 * Runs relays as child processes of this machine, for development, tests and the embedded stack. A relay exists if and
 * only if its process does, whichever process started it. Each relay writes its ports into a state file in
 * `<dataDir>/relay-nodes`.
 */

import { randomInt } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { isInstanceId } from '../../domain/fleet/instance-id.ts'
import type { RelayPorts } from '../../domain/relay/ports.ts'
import { lockFile } from '../../platform/file-lock.ts'
import type { Logger } from '../../platform/log.ts'
import { isRunning } from '../../platform/processes.ts'
import { type Attempt, type Launch, launch, removeOldLogs } from './local-launch.ts'
import { endRelays, findLocalRelay, type LocalRelay, listLocalRelays, relayFolderOf } from './local-relays.ts'
import { type RelayInstance, type RelayProvider, RelayProviderError } from './provider.ts'

export interface LocalRelayOptions {
  readonly dataDir: string
  readonly log: Logger
  /** The folders of programs, where relays find their engine. None by default. */
  readonly searchPath?: string
  /** The address that relays of a region bind. The default is 127.0.0.1. */
  readonly hostOf?: (region: string) => string
  /** The address or the name of the relays of a region for users, when it is another one than they bind. */
  readonly publicHostOf?: (region: string) => string | undefined
  /**
   * A process of that age without a state file has lost it. By default far longer than a start takes on a busy machine.
   */
  readonly readyMillisMax?: number
  /** How long a description waits for the state file of a relay that is starting. A second by default. */
  readonly describeMillisMax?: number
}

const pollMillis = 25
const createMillisMax = 20_000
const defaultReadyMillisMax = 15_000
const defaultDescribeMillisMax = 1_000
const localHost = '127.0.0.1'

const stateFileOf = (folder: string, instanceId: string) => join(folder, `${instanceId}.json`)

const port = z.int().min(1).max(65_535)

/** The state file, which a relay writes once all its ports are bound. */
const State = z.object({
  pid: z.int().positive(),
  startedAt: z.iso.datetime(),
  host: z.string().min(1),
  srtlaPort: port,
  publishPort: port,
  playPort: port,
  statsPort: port,
})

/**
 * The relays of one data folder. Any number of processes may use it at the same time, since it holds no state in
 * memory.
 */
export function createLocalRelayProvider({
  dataDir,
  log,
  searchPath = '',
  hostOf,
  publicHostOf,
  readyMillisMax = defaultReadyMillisMax,
  describeMillisMax = defaultDescribeMillisMax,
}: LocalRelayOptions): RelayProvider {
  const folder = relayFolderOf(dataDir)
  const withPublicHost = (instance: RelayInstance): RelayInstance => {
    const host = publicHostOf?.(instance.region)
    return host === undefined ? instance : { ...instance, endpoint: { ...instance.endpoint, host } }
  }
  return {
    zones: 1,
    listLagSeconds: 0,
    hasSharedHost: true,
    async create(spec, signal) {
      const { instanceId } = spec
      if (!isInstanceId(instanceId)) throw new RelayProviderError('this is not an instance id', 'give_up')
      const startedAt = performance.now()
      const host = hostOf?.(spec.region) ?? localHost
      const stateFile = stateFileOf(folder, instanceId)
      const instance = await createRelay(
        { folder, instanceId, stateFile, host, searchPath, spec: { ...spec, ports: spec.ports ?? choosePorts() } },
        readyMillisMax,
        signal,
      )
      log.info(
        { instanceId, sessionId: spec.sessionId, millis: Math.round(performance.now() - startedAt) },
        'relay created',
      )
      return withPublicHost(instance)
    },
    async describe(instanceId) {
      const instance = await describeRelay(await relaysOf(folder, instanceId), describeMillisMax)
      return instance && withPublicHost(instance)
    },
    async destroy(instanceId) {
      // Also keeps any other text out of file names.
      if (!isInstanceId(instanceId)) return
      const ended = await end(() => relaysOf(folder, instanceId))
      await removeLeftovers(folder, instanceId)
      await removeOldLogs(folder)
      log.info({ instanceId, processes: ended }, 'relay destroyed')
    },
    // Nothing starts a process again that has ended.
    async hasEnded(instanceId) {
      return (await relaysOf(folder, instanceId)).length === 0
    },
    async list(filter) {
      const byInstance = new Map<string, LocalRelay[]>()
      for (const relay of await listLocalRelays(folder)) {
        if (filter && relay.sessionId !== filter.sessionId) continue
        byInstance.set(relay.instanceId, [...(byInstance.get(relay.instanceId) ?? []), relay])
      }
      const instances = await Promise.all(
        [...byInstance.values()].map((relays) => describeRelay(relays, describeMillisMax)),
      )
      return instances.filter((instance) => instance !== null).map(withPublicHost)
    },
    async check() {
      await listLocalRelays(folder)
    },
  }
}

/**
 * Below the ranges from which systems take the ports of outgoing connections: one of those could take a port while its
 * relay is replaced. A relay that finds one taken binds free ones.
 */
const portRange = { min: 10_000, max: 20_000 }

function choosePorts(): RelayPorts {
  const srtlaPort = randomInt(portRange.min / 4, portRange.max / 4) * 4
  return { srtlaPort, publishPort: srtlaPort + 1, playPort: srtlaPort + 2, statsPort: srtlaPort + 3 }
}

const relaysOf = async (folder: string, instanceId: string) =>
  (await listLocalRelays(folder)).filter((relay) => relay.instanceId === instanceId)

/**
 * Adopts the instance or starts it. Other callers may create or destroy it at the same time, in any process, so each
 * round reads the present state. When aborted, it ends the process that it started and rejects with the reason of the
 * signal.
 */
async function createRelay(plan: Launch, readyMillisMax: number, signal: AbortSignal): Promise<RelayInstance> {
  const until = Date.now() + createMillisMax
  let attempt: Attempt | undefined
  try {
    for (;;) {
      signal.throwIfAborted()
      const instance = await boundInstance(plan.stateFile)
      if (instance) {
        if (attempt && attempt.pid !== instance.pid) await attempt.kill()
        return instance.relay
      }
      if (attempt?.hasEnded) {
        if (!attempt.foundAnother) throw await attempt.failure()
        await attempt.detach()
        attempt = undefined
      }
      if (!attempt) {
        const others = await relaysOf(plan.folder, plan.instanceId)
        if (others.length === 0) attempt = await launch(plan)
        // Without a state file its ports are lost, so another process replaces it.
        else if (others.every(({ startedAt }) => Date.now() - startedAt.getTime() > readyMillisMax))
          await end(() => relaysOf(plan.folder, plan.instanceId))
      }
      if (Date.now() >= until)
        throw new RelayProviderError(`${plan.instanceId} was not ready within ${createMillisMax} ms`)
      await sleep(pollMillis, undefined, { signal })
    }
  } catch (error) {
    await attempt?.kill()
    await removeLeftovers(plan.folder, plan.instanceId)
    if (signal.aborted) throw signal.reason
    throw error instanceof RelayProviderError
      ? error
      : new RelayProviderError(`${plan.instanceId} could not be created: ${(error as Error).message}`, 'retry', {
          cause: error,
        })
  } finally {
    await attempt?.detach()
  }
}

async function end(list: () => Promise<LocalRelay[]>): Promise<number> {
  try {
    return await endRelays(list)
  } catch (error) {
    throw new RelayProviderError((error as Error).message, 'retry', { cause: error })
  }
}

/**
 * Describes an instance by its processes; null when it has none any more. A relay that is starting gets a moment to
 * write its state file. One that stays without is described with ports 0: it exists, so it must be possible to list and
 * destroy it.
 * @param relays the processes of one instance. More than one, for a moment, when two callers create it at the same
 * time.
 */
async function describeRelay(relays: readonly LocalRelay[], describeMillisMax: number): Promise<RelayInstance | null> {
  const [relay] = relays
  if (!relay) return null
  const deadline = Date.now() + describeMillisMax
  for (;;) {
    const instance = await boundInstance(relay.stateFile)
    if (instance) return instance.relay
    const running = await Promise.all(relays.map(isRunning))
    if (!running.includes(true)) return null
    if (Date.now() >= deadline) break
    await sleep(pollMillis)
  }
  const { instanceId, sessionId, region, startedAt } = relay
  const endpoint = { host: localHost, srtlaPort: 0, publishPort: 0, playPort: 0, statsPort: 0 }
  return { instanceId, providerId: null, sessionId, region, endpoint, createdAt: startedAt }
}

/**
 * The instance of a state file, if its process runs. A killed relay leaves its state file behind. A file that cannot be
 * parsed, as after a power failure, counts as none, and the next relay of the instance replaces it.
 */
async function boundInstance(stateFile: string): Promise<{ pid: number; relay: RelayInstance } | null> {
  const { data: state } = State.safeParse(await readJson(stateFile))
  if (!state) return null
  const { pid, startedAt, host, srtlaPort, publishPort, playPort, statsPort } = state
  const relay = await findLocalRelay(pid)
  if (relay?.stateFile !== stateFile) return null
  const { instanceId, sessionId, region } = relay
  const endpoint = { host, srtlaPort, publishPort, playPort, statsPort }
  return { pid, relay: { instanceId, providerId: null, sessionId, region, endpoint, createdAt: new Date(startedAt) } }
}

/**
 * Removes the files that killed processes of an instance left behind, except for the log: state file, locks and drafts.
 */
async function removeLeftovers(folder: string, instanceId: string): Promise<void> {
  const listLeftovers = async () =>
    (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(`${instanceId}.json`))
  if ((await listLeftovers()).length === 0) return
  // Removes the locks of ended processes, and keeps a relay from starting meanwhile.
  const lock = await lockFile(stateFileOf(folder, instanceId))
  if ('heldBy' in lock) return
  const names = (await listLeftovers()).filter((name) => !/\.lock\.\d+$/.test(name))
  for (const name of names) await rm(join(folder, name), { force: true })
  lock.release()
}

/** The content of a JSON file; undefined when it is missing or cannot be parsed. */
async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
