/** One attempt to start a relay's process, from the spawn to the moment when it is up, gives way to another, or has died. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { relayArguments, relayProgram } from './local-processes.ts'
import { RelayProviderError, type RelaySpec } from './provider.ts'

export interface Launch {
  readonly folder: string
  readonly instanceId: string
  readonly stateFile: string
  readonly host: string
  readonly spec: RelaySpec
}

/** The codes with which a relay ends, apart from 0: see `relay-node/main.ts`. */
const exitCodes = { badSettings: 2, alreadyRunning: 3 }
const logTailBytesMax = 4_096
const logKeptMillis = 7 * 86_400_000

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))
const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href

export class Attempt {
  constructor(
    private readonly child: ChildProcess,
    private readonly logFile: FileHandle,
    /** Where this attempt's lines begin in the log, which earlier processes of the instance share. */
    private readonly logFrom: number,
    private readonly launch: Launch,
  ) {}

  get pid(): number | undefined {
    return this.child.pid
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** It found that another process already runs the instance, which is as good. */
  get gaveWay(): boolean {
    return this.child.exitCode === exitCodes.alreadyRunning
  }

  /** Resolves once the process is gone. */
  async kill(): Promise<void> {
    if (this.hasEnded) return
    this.child.ref()
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }

  /** Why it died, in its own last words. */
  async failure(): Promise<RelayProviderError> {
    const { exitCode, signalCode } = this.child
    const words = await this.#lastWords()
    const how = signalCode ? `was ended by ${signalCode}` : `ended with code ${exitCode}`
    return new RelayProviderError(
      `${this.launch.instanceId} ${how} before it was up${words ? `:\n${words}` : ''}`,
      exitCode === exitCodes.badSettings,
    )
  }

  /** A relay writes no secrets. Should one slip in, it still must not reach an error that is stored and shown. */
  async #lastWords(): Promise<string> {
    const { relayAuthSecret, streamToken } = this.launch.spec
    const { size } = await this.logFile.stat()
    const from = Math.max(this.logFrom, size - logTailBytesMax)
    const { buffer, bytesRead } = await this.logFile.read(Buffer.alloc(Math.max(size - from, 0)), 0, undefined, from)
    const lines = buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-10).join('\n')
    return [relayAuthSecret, streamToken].reduce((text, secret) => text.replaceAll(secret, '[redacted]'), lines)
  }

  /** Lets go of the process: it lives on without us. */
  async leave(): Promise<void> {
    await this.logFile.close()
  }
}

/** Spawns a process that outlives this one. Rejects with {@link RelayProviderError} when the system can't. */
export async function launch(plan: Launch): Promise<Attempt> {
  const { folder, instanceId, stateFile, host, spec } = plan
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const logFile = await open(join(folder, `${instanceId}.log`), 'a+', 0o600)
  const { size } = await logFile.stat()
  const program = join(projectFolder, relayProgram)
  const relay = { instanceId, sessionId: spec.sessionId, region: spec.region, stateFile }
  const child = spawn(process.execPath, ['--import', loader, program, ...relayArguments(relay)], {
    cwd: projectFolder,
    detached: true,
    stdio: ['ignore', logFile.fd, logFile.fd],
    // Nothing is inherited: our own environment holds secrets that are none of a relay's business.
    env: {
      NODE_ENV: 'production',
      SVC_RELAY_API_URL: spec.apiUrl,
      SVC_RELAY_AUTH_SECRET: spec.relayAuthSecret,
      SVC_RELAY_STREAM_TOKEN: spec.streamToken,
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(spec.healthIntervalSeconds),
      SVC_RELAY_CAP_MBPS: String(spec.capMbps),
      SVC_RELAY_HOST: host,
    },
  })
  try {
    await once(child, 'spawn')
  } catch (error) {
    await logFile.close()
    throw new RelayProviderError(`no process could be started for ${instanceId}`, false, { cause: error })
  }
  child.unref()
  return new Attempt(child, logFile, size, plan)
}

/** The logs of relays stay for a week, to be read when one died. */
export async function removeOldLogs(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.log')) continue
    const path = join(folder, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > logKeptMillis) await rm(path, { force: true })
  }
}
