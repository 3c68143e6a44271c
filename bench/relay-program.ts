/** The relay of the measurements that stream through one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readStackConfig } from '../platform/config/stack.ts'
import { nodeArguments } from '../platform/launcher.ts'
import { formatStreamTokenHash, hashStreamToken } from '../platform/stream-token-hashes.ts'
import { relayProgram } from '../providers/relay/local-relays.ts'
import { findLiveTransmit } from '../relay-node/live-transmit-engine.ts'
import type { StateFile } from '../relay-node/state-file.ts'
import { logProgress, waitUntil } from './stack.ts'

export const streamToken = 'Ab12Cd34'
const searchPath = readStackConfig().environment.PATH ?? ''

const missingEngine = 'srt-live-transmit is not installed (Debian and Ubuntu: apt-get install srt-tools)'

/**
 * @param isOptional whether the measurement is skipped without srt-live-transmit, instead of failing.
 * @returns the path of srt-live-transmit; undefined where the measurement is skipped.
 */
export function findTransmit(measurement: string, isOptional: boolean): string | undefined {
  const transmit = findLiveTransmit(searchPath)
  if (transmit !== undefined) return transmit
  if (!isOptional) throw new Error(missingEngine)
  logProgress(`${measurement}: skipped, ${missingEngine}`)
  return undefined
}

/** Starts a relay with ports of its own. @param folder for its state. */
export async function startRelay(folder: string, apiUrl: string): Promise<{ child: ChildProcess; state: StateFile }> {
  const stateFile = join(folder, 'relay.json')
  const ids = ['--instance', 'bench', '--session', randomUUID(), '--region', 'bench', '--state-file', stateFile]
  const child = spawn(process.execPath, [...nodeArguments(relayProgram), ...ids], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: searchPath,
      SVC_RELAY_API_URL: apiUrl,
      SVC_RELAY_AUTH_SECRET: 'bench',
      SVC_RELAY_STREAM_TOKEN_HASH: formatStreamTokenHash(
        hashStreamToken(streamToken, Buffer.alloc(32).toString('base64url')),
      ),
      SVC_RELAY_CAP_MBPS: '100',
    },
  })
  const read = () => readFile(stateFile, 'utf8').catch(() => undefined)
  await waitUntil('the relay is ready', async () => (await read()) !== undefined)
  return { child, state: JSON.parse((await read()) ?? '') as StateFile }
}

/** Ends a program, also one that does not end when it is asked to. */
export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await Promise.race([ended, sleep(3_000)])
  child.kill('SIGKILL')
}
