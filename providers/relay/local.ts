/**
 * Relays as child processes of this machine, for development, tests and the embedded stack. The process table stands for the
 * cloud: a relay exists if and only if its process does, whoever started it. Each writes its ports into a state file in
 * `<dataDir>/relay-nodes`, and that folder is also what tells the relays of one control plane from those of another.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { Logger } from '../../platform/log.ts'
import { type Attempt, type Launch, launch, removeOldLogs } from './local-launch.ts'
import { endRelay, isRunning, type RelayProcess, relayProcessAt, relayProcesses, startedAt } from './local-processes.ts'
import { type RelayInstance, type RelayProvider, RelayProviderError } from './provider.ts'

export interface LocalRelayOptions {
  readonly dataDir: string
  readonly log: Logger
  /** The address that relays of a region bind and are reached under. 127.0.0.1 unless given. */
  readonly hostOf?: (region: string) => string
}

const pollMillis = 25
const createMillisMax = 20_000
/** Far longer than a start takes on a busy machine: a process of that age without a state file has lost it. */
const upMillisMax = 15_000
const describeMillisMax = 1_000
const localHost = '127.0.0.1'

const folderOf = (dataDir: string) => join(resolve(dataDir), 'relay-nodes')
const instanceIdOf = (sessionId: string) => `local-${createHash('sha256').update(sessionId).digest('hex').slice(0, 16)}`
const isInstanceId = (text: string) => /^local-[0-9a-f]{16}$/.test(text)
const stateFileOf = (folder: string, instanceId: string) => join(folder, `${instanceId}.json`)

const port = z.int().min(1).max(65_535)

/** What a relay writes once all its ports are bound. */
const State = z.object({
  pid: z.int().positive(),
  startedAt: z.iso.datetime(),
  host: z.string().min(1),
  srtlaPort: port,
  publishPort: port,
  playPort: port,
  statsPort: port,
})

/** The relays of one data folder. Objects of any number of processes may share it: none holds a state of its own. */
export function createLocalRelayProvider({ dataDir, log, hostOf }: LocalRelayOptions): RelayProvider {
  const folder = folderOf(dataDir)
  const processesOf = (instanceId: string) => relaysOf(folder, instanceId)
  return {
    async create(spec, signal) {
      const instanceId = instanceIdOf(spec.sessionId)
      const began = performance.now()
      const host = hostOf?.(spec.region) ?? localHost
      const stateFile = stateFileOf(folder, instanceId)
      const instance = await createRelay({ folder, instanceId, stateFile, host, spec }, signal)
      log.info(
        { instanceId, sessionId: spec.sessionId, millis: Math.round(performance.now() - began) },
        'relay is there',
      )
      return instance
    },
    async describe(instanceId) {
      const [first, ...more] = await processesOf(instanceId)
      return first ? present(first, more) : null
    },
    async destroy(instanceId) {
      // Anything else can't be ours, and must not be taken for a file name.
      if (!isInstanceId(instanceId)) return
      const ended = await endAll(() => processesOf(instanceId))
      await removeTraces(folder, instanceId)
      await removeOldLogs(folder)
      log.info({ instanceId, processes: ended }, 'relay is gone')
    },
    async list(filter) {
      const byInstance = new Map<string, RelayProcess[]>()
      for (const relay of await relayProcesses(folder)) {
        if (filter && relay.sessionId !== filter.sessionId) continue
        byInstance.set(relay.instanceId, [...(byInstance.get(relay.instanceId) ?? []), relay])
      }
      const all = await Promise.all([...byInstance.values()].map(([first, ...more]) => first && present(first, more)))
      return all.filter((instance) => instance != null)
    },
  }
}

const relaysOf = async (folder: string, instanceId: string) =>
  (await relayProcesses(folder)).filter((relay) => relay.instanceId === instanceId)

/**
 * Adopts the instance or starts it. Others may do the same at this moment, in this process or another, or end what we found:
 * so each round looks at what is there now. Once aborted it rejects with the signal's reason, and what it spawned is gone.
 */
async function createRelay(plan: Launch, signal: AbortSignal): Promise<RelayInstance> {
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
        if (!attempt.gaveWay) throw await attempt.failure()
        await attempt.leave()
        attempt = undefined
      }
      if (!attempt) {
        const others = await relaysOf(plan.folder, plan.instanceId)
        if (others.length === 0) attempt = await launch(plan)
        // Its ports can't be found any more, so another process takes its place.
        else if (others.every(isOverdue)) await endAll(() => relaysOf(plan.folder, plan.instanceId))
      }
      if (Date.now() >= until)
        throw new RelayProviderError(`${plan.instanceId} was not up within ${createMillisMax} ms`)
      await sleep(pollMillis, undefined, { signal })
    }
  } catch (error) {
    await attempt?.kill()
    await removeTraces(plan.folder, plan.instanceId)
    if (signal.aborted) throw signal.reason
    throw error instanceof RelayProviderError
      ? error
      : new RelayProviderError(`${plan.instanceId} can't be created: ${(error as Error).message}`, false, {
          cause: error,
        })
  } finally {
    await attempt?.leave()
  }
}

const isOverdue = (relay: RelayProcess): boolean => Date.now() - startedAt(relay).getTime() > upMillisMax

/** Ends all relays of a data folder and resolves, with their number, once none is left. */
export async function endAllLocalRelays(dataDir: string): Promise<number> {
  const folder = folderOf(dataDir)
  const instanceIds = new Set<string>()
  const ended = await endAll(async () => {
    const relays = await relayProcesses(folder)
    for (const relay of relays) instanceIds.add(relay.instanceId)
    return relays
  })
  for (const instanceId of instanceIds) await removeTraces(folder, instanceId)
  return ended
}

/** Looks again after each round: a relay that was being started may have come meanwhile. */
async function endAll(find: () => Promise<RelayProcess[]>): Promise<number> {
  let ended = 0
  for (let relays = await find(); relays.length > 0; relays = await find()) {
    await Promise.all(relays.map(endRelay))
    ended += relays.length
  }
  return ended
}

/**
 * What exists of an instance; null if it went away while we looked. One that is still starting is waited for a moment, and if
 * it stays without a state file it is shown with ports 0: it exists, so it must be possible to find and destroy it.
 * @param more processes of the same instance, there for a moment when two callers created it at once: one will stay.
 */
async function present(first: RelayProcess, more: readonly RelayProcess[]): Promise<RelayInstance | null> {
  const until = Date.now() + describeMillisMax
  for (;;) {
    const instance = await boundInstance(first.stateFile)
    if (instance) return instance.relay
    const running = await Promise.all([first, ...more].map(isRunning))
    if (!running.includes(true)) return null
    if (Date.now() >= until) break
    await sleep(pollMillis)
  }
  const { instanceId, sessionId, region } = first
  const endpoint = { host: localHost, srtlaPort: 0, publishPort: 0, playPort: 0, statsPort: 0 }
  return { instanceId, sessionId, region, endpoint, createdAt: startedAt(first) }
}

/**
 * The instance of a state file whose process runs. A file without it is what a killed relay left. One that can't be
 * understood, as after a power failure, counts as none: the next relay of the instance replaces it.
 */
async function boundInstance(stateFile: string): Promise<{ pid: number; relay: RelayInstance } | null> {
  const { data: state } = State.safeParse(await readJson(stateFile))
  if (!state) return null
  const { pid, startedAt, host, srtlaPort, publishPort, playPort, statsPort } = state
  const process = await relayProcessAt(pid)
  if (process?.stateFile !== stateFile) return null
  const { instanceId, sessionId, region } = process
  const endpoint = { host, srtlaPort, publishPort, playPort, statsPort }
  return { pid, relay: { instanceId, sessionId, region, endpoint, createdAt: new Date(startedAt) } }
}

/** Removes what processes that are gone left behind, all but the log: state files, locks, drafts of either. */
async function removeTraces(folder: string, instanceId: string): Promise<void> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.startsWith(`${instanceId}.json`))
  for (const name of names) {
    const path = join(folder, name)
    const owner = await relayProcessAt(await writerOf(path))
    if (owner?.instanceId !== instanceId) await rm(path, { force: true })
  }
}

/** The pid in a lock, a state file, or the name of a draft, which may not be whole yet; 0, which no process has, without one. */
async function writerOf(path: string): Promise<number> {
  const draftOf = /\.(\d+)\.tmp$/.exec(path)?.[1]
  return draftOf ? Number(draftOf) : (Writer.safeParse(await readJson(path)).data ?? 0)
}

const pid = z.int().positive()
const Writer = z.union([pid, z.object({ pid }).transform((state) => state.pid)])

/** What a file holds; undefined when there is none, or no JSON in it. */
async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'))
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
