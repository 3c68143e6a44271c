/** Starts relays as real processes, as their provider does, and ends them after the test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'
import { formatStreamTokenHash, hashStreamToken } from '../../platform/stream-token-hashes.ts'
import { relayArguments, relayProgram } from '../../providers/relay/local-relays.ts'
import type { Admissions } from '../../relay-node/health-report.ts'
import type { StateFile } from '../../relay-node/state-file.ts'
import type { StatsReply } from '../../relay-node/stats.ts'
import { startControlPlane } from './control-plane.ts'

export const secret = 'the-secret-between-relay-and-plane'
export const streamToken = 'Ab12Cd34'
/** As a relay gets it with its start. */
export const hashedToken = (token: string): string =>
  formatStreamTokenHash(hashStreamToken(token, Buffer.alloc(32, 7).toString('base64url')))

/** The summary of a relay without a stream. */
export const noIngest = {
  publishing: false,
  bitrate_kbps: 0,
  links: 0,
  players: 0,
  stalled_players: 0,
  bytes_total: 0,
  engine: 'none',
  refused: {},
  last_refused: {},
  publishing_ms_total: 0,
  peak_bitrate_kbps: 0,
} as const

/** For reports of a relay that admits no caller. */
export const noAdmissions: Admissions = { revision: () => null, takeUsedPlayKeys: () => [], onChange: () => {} }

export async function eventually<T>(
  ask: () => T | Promise<T>,
  holds: (value: T) => boolean,
  millisMax = 60_000,
): Promise<T> {
  const until = Date.now() + millisMax
  for (;;) {
    const value = await ask()
    if (holds(value)) return value
    if (Date.now() > until) throw new Error(`not within ${millisMax} ms: ${JSON.stringify(value)}`)
    await new Promise((done) => setTimeout(done, 15))
  }
}

export async function givenControlPlane(port = 0) {
  const plane = await startControlPlane(port)
  onTestFinished(() => plane.close())
  return plane
}

export function givenFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'relay-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export const endOf = async (child: ChildProcess): Promise<number | null> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return child.exitCode
}

interface Start {
  readonly apiUrl: string
  readonly folder?: string
  readonly sessionId?: string
  /** Starts without a session and without a stream token. */
  readonly isUnbound?: boolean
  readonly intervalSeconds?: number
  /** Additional environment variables. Without `PATH` the relay finds no engine. */
  readonly variables?: Readonly<Record<string, string | undefined>>
  /** Receives its log instead of `output()`. */
  readonly logFile?: string
}

/** Starts a relay. `up` waits until it is ready. */
export function startRelay({ apiUrl, folder = givenFolder(), logFile, variables, ...start }: Start) {
  const { sessionId = randomUUID(), isUnbound = false, intervalSeconds = 0.2 } = start
  const instanceId = 'relay-1'
  const stateFile = join(folder, `${instanceId}.json`)
  const relay = relayArguments({ instanceId, sessionId: isUnbound ? null : sessionId, region: 'local', stateFile })
  const child = spawn(process.execPath, [...nodeArguments(relayProgram), ...relay], {
    stdio: ['ignore', logFile ? openSync(logFile, 'a') : 'pipe', 'inherit'],
    env: {
      SVC_RELAY_API_URL: apiUrl,
      SVC_RELAY_AUTH_SECRET: secret,
      ...(isUnbound ? {} : { SVC_RELAY_STREAM_TOKEN_HASH: hashedToken(streamToken) }),
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(intervalSeconds),
      SVC_RELAY_CAP_MBPS: '48',
      ...variables,
    },
  })
  let output = ''
  child.stdout?.on('data', (data) => {
    output += data
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await endOf(child)
  })
  const state = () => JSON.parse(readFileSync(stateFile, 'utf8')) as StateFile
  return {
    child,
    sessionId,
    instanceId,
    stateFile,
    output: () => output,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    async up(): Promise<StateFile> {
      await eventually(() => existsSync(stateFile), Boolean)
      return state()
    },
  }
}

export async function statsOf(state: { host: string; statsPort: number }): Promise<StatsReply> {
  return (await fetch(`http://${state.host}:${state.statsPort}/stats`)).json() as Promise<StatsReply>
}
