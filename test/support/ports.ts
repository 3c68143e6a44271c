/**
 * Ports for what a test starts. The files that run at a time have ports of their own: a process that looks for a free
 * port listens on it for a moment, and another one that begins to listen just then would fail.
 */
import { createPortFinder } from '../../platform/embedded/ports.ts'

/** More than Vitest runs processes at a time, beside what runs without it. */
const sharesMax = 10
const portsPerShare = 1_000
const share = Number(process.env.VITEST_POOL_ID ?? 0) % sharesMax
/** Below the ports that programs choose for themselves. */
const first = 10_000 + share * portsPerShare

/** A port on which no process listens. */
export const findFreePort = createPortFinder(first, first + portsPerShare - 1)
