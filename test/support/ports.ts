/**
 * Ports for what a test starts. The files that run at a time have ports of their own: a process that looks for a free
 * port listens on it for a moment, and another one that begins to listen just then would fail.
 */
import { randomInt } from 'node:crypto'
import { isFreePort } from '../../platform/embedded/ports.ts'

/** Below the ports that programs choose for themselves (`platform/embedded/ports.ts`). */
const portMin = 10_000
/** More than Vitest runs processes at a time, beside what runs without it. */
const sharesMax = 10
const portsPerShare = 1_000

const share = Number(process.env.VITEST_POOL_ID ?? 0) % sharesMax
/** Begins anywhere, since the tests of another copy of the project may run on the same machine. */
let next = randomInt(portsPerShare)

/** A port on which no process listens. */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < portsPerShare; attempt += 1) {
    const port = portMin + share * portsPerShare + next
    next = (next + 1) % portsPerShare
    if (await isFreePort(port)) return port
  }
  throw new Error(`all ports from ${portMin + share * portsPerShare} on are taken by other programs`)
}
