/** The servers of the peers: programs of the package `bench/peers`, on databases of the stack's Postgres. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BenchData } from './data.ts'
import { logProgress, type RunningProgram, type Stack } from './stack.ts'

export interface PeerBench {
  readonly stack: Stack
  readonly api: RunningProgram
  readonly data: BenchData
  /** Number of pairs, without the warm-up pair. */
  readonly rounds: number
}

/** The same server and the same number of connections as the service has. */
export function peerVariables({ config }: Stack, database: string): Readonly<Record<string, string>> {
  const url = new URL(config.database.url)
  url.pathname = `/${database}`
  return { PEER_DATABASE_URL: url.href, PEER_DATABASE_POOL: String(config.database.connectionsMax) }
}

/** The packages of the peers are not dependencies of the service, so they are installed by the measurement. */
export async function installPeers(): Promise<void> {
  const folder = fileURLToPath(new URL('peers', import.meta.url))
  logProgress('npm ci --prefix bench/peers')
  await promisify(execFile)('npm', ['ci', '--prefix', folder, '--no-audit', '--no-fund'])
}
