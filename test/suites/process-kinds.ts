/** The CPU time of all processes that descend from one, by kind. Needs Linux's process table. */
import { readdirSync, readFileSync } from 'node:fs'

/** The first pattern that a command line matches names its kind. */
const kinds: readonly (readonly [kind: string, command: RegExp])[] = [
  ['Postgres', /(^|\/)postgres( |:|$)|initdb/],
  ['Temporal', /temporal/i],
  ['relays', /relay-node\/main|srt-live-transmit/],
  ['test processes', /vitest/],
  ['api', /api\/server/],
  ['worker', /worker\/worker/],
  ['site', /web\/server/],
  ['npm start', /cli\/start/],
  ['svc and other commands', /cli\//],
  ['bundlers', /esbuild|build-programs|build\.ts/],
  ['browser', /chrom/],
  ['video', /ffmpeg|ffplay/],
  ['other Node programs', /node/],
]

interface Seen {
  kind: string
  cpu: number
}

const ticksPerSecond = 100
const sampleMillis = 200

export interface KindCost {
  readonly kind: string
  readonly count: number
  readonly cpu: number
}

export interface ProcessWatch {
  /** The kinds with the most CPU seconds first. What a process uses in its last 200 ms is not seen. */
  end(): KindCost[]
}

export function watchProcesses(ancestor: number): ProcessWatch {
  const seen = new Map<string, Seen>()
  const family = new Set([ancestor])
  const timer = setInterval(() => sample(seen, family), sampleMillis)
  return {
    end() {
      clearInterval(timer)
      const costs = new Map<string, { count: number; cpu: number }>()
      for (const { kind, cpu } of seen.values()) {
        const cost = costs.get(kind) ?? { count: 0, cpu: 0 }
        costs.set(kind, { count: cost.count + 1, cpu: cost.cpu + cpu })
      }
      return [...costs].map(([kind, cost]) => ({ kind, ...cost })).toSorted((a, b) => b.cpu - a.cpu)
    },
  }
}

/** A process that outlives its parent stays in the family. */
function sample(seen: Map<string, Seen>, family: Set<number>): void {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      const key = `${name} ${fields[19]}`
      if (!seen.has(key) && !family.has(Number(fields[1]))) continue
      family.add(Number(name))
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      const kind = kinds.find(([, pattern]) => pattern.test(command))?.[0] ?? 'others'
      const cpu = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
      // The last line of a process that has ended is empty.
      seen.set(key, { kind: command === '' ? (seen.get(key)?.kind ?? kind) : kind, cpu })
    } catch {
      // The process has ended.
    }
  }
}
