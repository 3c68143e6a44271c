/** CPU time and memory of processes, from Linux's process table. NaN on systems without /proc. */
import { readdir, readFile } from 'node:fs/promises'

const microsPerTick = 10_000

/** CPU time of the process so far, in microseconds. */
export const cpuMicros = async (pid: number): Promise<number> => (await readTimes(pid)).own

/** CPU time of a server and of its direct children so far, also of those that have ended, in microseconds. */
export async function cpuMicrosOfFamily(pid: number): Promise<number> {
  const all = await readdir('/proc').catch(() => [])
  const others = await Promise.all(all.filter((name) => /^\d+$/.test(name)).map((name) => readTimes(Number(name))))
  const { own, ended } = await readTimes(pid)
  return others.filter(({ parent }) => parent === pid).reduce((sum, child) => sum + child.own, own + ended)
}

/** Resident memory in MB. */
export async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? Number.NaN) / 1024)
}

interface Times {
  readonly parent: number
  readonly own: number
  /** Of children that have ended and were waited for. */
  readonly ended: number
}

async function readTimes(pid: number): Promise<Times> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [parent = Number.NaN] = fields.slice(1)
  const [user = Number.NaN, system = Number.NaN, endedUser = Number.NaN, endedSystem = Number.NaN] = fields.slice(11)
  return { parent, own: (user + system) * microsPerTick, ended: (endedUser + endedSystem) * microsPerTick }
}
