/**
 * An attempt to start the process of a relay, until it is ready, finds that another process runs the instance, or has
 * ended.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeArguments } from '../../platform/launcher.ts'
import { formatStreamTokenHash } from '../../platform/stream-token-hashes.ts'
import { relayArguments, relayProgram } from './local-relays.ts'
import { RelayProviderError, type RelaySpec } from './provider.ts'
import { relayVariables } from './relay-variables.ts'

export interface Launch {
  readonly folder: string
  readonly instanceId: string
  readonly stateFile: string
  readonly host: string
  readonly searchPath: string
  readonly spec: RelaySpec
}

/** Exit codes of a relay; see `relay-node/main.ts`. */
const exitCodes = { invalidSettings: 2, alreadyRunning: 3 }
const logTailBytesMax = 4_096
const logRetentionMillis = 7 * 86_400_000

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

export class Attempt {
  constructor(
    private readonly child: ChildProcess,
    private readonly logFile: FileHandle,
    /** Where the lines of this attempt begin in the log, which is shared with earlier processes of the instance. */
    private readonly logOffset: number,
    private readonly launch: Launch,
  ) {}

  get pid(): number | undefined {
    return this.child.pid
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null
  }

  /** Whether it ended because another process runs the instance. */
  get foundAnother(): boolean {
    return this.child.exitCode === exitCodes.alreadyRunning
  }

  /** Resolves once the process has ended. */
  async kill(): Promise<void> {
    if (this.hasEnded) return
    this.child.ref()
    const ended = once(this.child, 'exit')
    this.child.kill('SIGKILL')
    await ended
  }

  /** Why it ended, with the last lines of its log. */
  async failure(): Promise<RelayProviderError> {
    const { exitCode, signalCode } = this.child
    const lines = await this.#readLastLines()
    const how = signalCode ? `was ended by ${signalCode}` : `ended with code ${exitCode}`
    return new RelayProviderError(
      `${this.launch.instanceId} ${how} before it was ready${lines ? `:\n${lines}` : ''}`,
      exitCode === exitCodes.invalidSettings ? 'give_up' : 'retry',
      exitCode === exitCodes.invalidSettings ? { detail: 'configuration' } : {},
    )
  }

  /** A relay logs no secrets. They are redacted anyway, since the error is stored and shown. */
  async #readLastLines(): Promise<string> {
    const { relayAuthSecret, srtPassphrase, sls } = this.launch.spec
    const { size } = await this.logFile.stat()
    const from = Math.max(this.logOffset, size - logTailBytesMax)
    const { buffer, bytesRead } = await this.logFile.read(Buffer.alloc(Math.max(size - from, 0)), 0, undefined, from)
    const lines = buffer.toString('utf8', 0, bytesRead).trim().split('\n').slice(-10).join('\n')
    const secrets = [relayAuthSecret, srtPassphrase, sls?.apiKey].filter((secret) => secret != null)
    return secrets.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), lines)
  }

  /** Releases the log file. The process keeps running. */
  async detach(): Promise<void> {
    await this.logFile.close()
  }
}

/** Spawns a process that outlives this one. Rejects with {@link RelayProviderError}. */
export async function launch(plan: Launch): Promise<Attempt> {
  const { folder, instanceId, stateFile, host, searchPath, spec } = plan
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const logFile = await open(join(folder, `${instanceId}.log`), 'a+', 0o600)
  const { size } = await logFile.stat()
  const relay = { instanceId, sessionId: spec.sessionId, region: spec.region, stateFile }
  const child = spawn(process.execPath, [...nodeArguments(relayProgram), ...relayArguments(relay)], {
    cwd: projectFolder,
    detached: true,
    stdio: ['ignore', logFile.fd, logFile.fd],
    // Nothing is inherited, since the environment of this process contains secrets.
    env: {
      NODE_ENV: 'production',
      ...relayVariables(spec),
      ...(spec.streamTokenHash === null
        ? {}
        : { SVC_RELAY_STREAM_TOKEN_HASH: formatStreamTokenHash(spec.streamTokenHash) }),
      SVC_RELAY_HOST: host,
      PATH: searchPath,
    },
  })
  try {
    await once(child, 'spawn')
  } catch (error) {
    await logFile.close()
    throw new RelayProviderError(`the process of ${instanceId} could not be started`, 'retry', { cause: error })
  }
  child.unref()
  return new Attempt(child, logFile, size, plan)
}

/** Logs of relays are kept for a week. */
export async function removeOldLogs(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!name.endsWith('.log')) continue
    const path = join(folder, name)
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > logRetentionMillis) await rm(path, { force: true })
  }
}
