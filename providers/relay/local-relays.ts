/** The relays that run as child processes of this machine. A relay exists if and only if its process does. */
import { dirname, join, resolve } from 'node:path'
import { endProcess, findProcess, listProcesses, type RunningProcess, type Signals } from '../../platform/processes.ts'

/** The program of a relay, below the project's folder. */
export const relayProgram = 'relay-node/main.ts'

export interface LocalRelay extends RunningProcess {
  readonly instanceId: string
  /** Null for a warm instance, whose session is known to the control plane only. */
  readonly sessionId: string | null
  readonly region: string
  /** The relay writes its ports there once they are bound. */
  readonly stateFile: string
}

/** The folder of the state files and logs of relays. Separates the relays of one data folder from those of another. */
export const relayFolderOf = (dataDir: string): string => join(resolve(dataDir), 'relay-nodes')

/** The arguments of a relay. The only one that may contain spaces is last, so that a command line can be parsed. */
export const relayArguments = (relay: Pick<LocalRelay, 'instanceId' | 'sessionId' | 'region' | 'stateFile'>) => [
  '--instance',
  relay.instanceId,
  ...(relay.sessionId === null ? [] : ['--session', relay.sessionId]),
  '--region',
  relay.region,
  '--state-file',
  relay.stateFile,
]

const commandPattern = new RegExp(
  `(^|[ /])${relayProgram.replace('.', '\\.')}` +
    ' --instance (?<instanceId>\\S+)( --session (?<sessionId>\\S+))? --region (?<region>\\S+) --state-file (?<stateFile>.+)$',
)

function parseRelay(process: RunningProcess | undefined): LocalRelay | undefined {
  const { instanceId, sessionId, region, stateFile } = commandPattern.exec(process?.command ?? '')?.groups ?? {}
  if (!process || !instanceId || !region || !stateFile) return undefined
  return { ...process, instanceId, sessionId: sessionId ?? null, region, stateFile }
}

/** All relays whose state files are in a folder. Rejects when the process table cannot be read. */
export async function listLocalRelays(folder: string): Promise<LocalRelay[]> {
  const relays = (await listProcesses((command) => commandPattern.test(command))).map(parseRelay)
  return relays.filter((relay) => relay !== undefined && dirname(relay.stateFile) === folder) as LocalRelay[]
}

/** The relay with a pid; nothing when the process is no relay. */
export const findLocalRelay = async (pid: number): Promise<LocalRelay | undefined> => parseRelay(await findProcess(pid))

const relayStop: Signals = [
  ['SIGTERM', 3000],
  ['SIGKILL', 5000],
]

/**
 * Ends relays until `list` finds none, since one may have been starting at the first look.
 * @returns how many it ended.
 */
export async function endRelays(list: () => Promise<LocalRelay[]>, signals = relayStop): Promise<number> {
  let ended = 0
  for (let relays = await list(); relays.length > 0; relays = await list()) {
    await Promise.all(relays.map((relay) => endProcess(relay, signals)))
    ended += relays.length
  }
  return ended
}

/** Ends all relays of a data folder. They survive the worker on purpose. @returns how many it ended. */
export const endLocalRelays = (dataDir: string, signals?: Signals): Promise<number> =>
  endRelays(() => listLocalRelays(relayFolderOf(dataDir)), signals)
