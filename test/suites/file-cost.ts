/** What the test files of a run cost, one line of JSON a file. Written for `npm run test:costs` only. */
import { appendFileSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { expect } from 'vitest'

export interface FileCost {
  readonly file: string
  readonly seconds: number
  /** CPU seconds of the test process. */
  readonly cpu: number
  /** CPU seconds of the programs that it started and that ended meanwhile. */
  readonly programsCpu: number
}

const ticksPerSecond = 100

/** 0 on systems without /proc. */
function programsCpuSeconds(): number {
  try {
    const text = readFileSync('/proc/self/stat', 'utf8')
    const [user = 0, system = 0] = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .slice(13, 15)
    return (Number(user) + Number(system)) / ticksPerSecond
  } catch {
    return 0
  }
}

/** Begins to measure. Call the returned function at the end of the file. */
export function measureFile(): () => void {
  const costsFile = process.env.TEST_COSTS_FILE
  if (costsFile === undefined) return () => {}
  const [startedAt, cpuBefore, programsBefore] = [performance.now(), process.cpuUsage(), programsCpuSeconds()]
  return () => {
    const { user, system } = process.cpuUsage(cpuBefore)
    const cost: FileCost = {
      file: relative(process.cwd(), expect.getState().testPath ?? ''),
      seconds: (performance.now() - startedAt) / 1000,
      cpu: (user + system) / 1e6,
      programsCpu: programsCpuSeconds() - programsBefore,
    }
    appendFileSync(costsFile, `${JSON.stringify(cost)}\n`)
  }
}
