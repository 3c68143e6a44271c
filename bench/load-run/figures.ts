/** The rows of the load run. */
import { type Figure, type Row, single } from '../rows.ts'
import type { ProcessSamples } from './process-samples.ts'
import { type Operation, operations, type Recorder } from './recorder.ts'

/** Ten minutes of growth at this rate are a tenth of the memory of a process. */
const growthMax = { target: 3, bound: 'at_most' } as const
const heapGrowthMax = { target: 1, bound: 'at_most' } as const
const none = { target: 0, bound: 'at_most' } as const

export function requestRows(recorder: Recorder, seconds: number): Row[] {
  const rows = (Object.keys(operations) as Operation[]).flatMap((operation) => {
    if (recorder.countOf(operation) === 0) return []
    const { name } = operations[operation]
    const reading = recorder.summarize(operation)
    const row = (figure: 'p50' | 'p99' | 'max') =>
      single({ name: `${operation}_${figure}`, what: `${name}: ${figure}`, unit: 'ms' }, reading[`${figure} ms`] ?? 0)
    return [row('p50'), row('p99'), row('max')]
  })
  const answered: Figure = { name: 'answered', what: 'answered requests', unit: '/s' }
  const refused: Figure = { name: 'refused', what: 'requests refused with 429 or 503', unit: 'requests' }
  const unexpected: Figure = { name: 'unexpected', what: 'unexpected answers and failures', unit: 'requests', ...none }
  return [
    ...rows,
    single(answered, recorder.answered / seconds),
    single(refused, recorder.refused),
    single(unexpected, recorder.unexpected),
  ]
}

export async function processRows(name: string, samples: ProcessSamples): Promise<Row[]> {
  const { last, min, max } = samples.megabytes
  return [
    single({ name: `${name}_memory`, what: `memory of the ${name} at the end`, unit: 'MB' }, last, { min, max }),
    single(
      { name: `${name}_memory_growth`, what: `growth of the memory of the ${name}`, unit: 'MB/min', ...growthMax },
      samples.growth,
    ),
    single(
      {
        name: `${name}_heap_growth`,
        what: `growth of the heap of the ${name} after collections`,
        unit: 'MB/min',
        ...heapGrowthMax,
      },
      samples.heapGrowth,
    ),
    single({ name: `${name}_cpu`, what: `CPU of the ${name}`, unit: '% of a core' }, await samples.cpuPercent()),
  ]
}

/** @param lost transitions into grace although the relay reported. */
export const relayRows = (active: number, lost: number): Row[] => [
  single({ name: 'relays_active', what: 'active relays at the end', unit: 'relays' }, active),
  single({ name: 'health_lost', what: 'relays declared lost although they reported', unit: 'relays', ...none }, lost),
]
