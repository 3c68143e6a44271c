/**
 * The stage with streams that are damaged in every way. `npm run soak -- picture` takes 10 million packets.
 */
import { PerformanceObserver } from 'node:perf_hooks'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test, vi } from 'vitest'
import { onLossModes } from '../../../domain/relay/on-loss.ts'
import { type Publication, Stage } from '../../../relay-node/transport-stream/stage.ts'
import { createRandom, type Random } from '../../support/random.ts'
import { MutatedPackets } from './mutated-packets.ts'

const packets = Number(process.env.PICTURE_FUZZ_PACKETS ?? 100_000)
const seed = Number(process.env.PICTURE_SEED ?? 36)
const batch = 10_000
const slowMicrosMin = 10
const slowMicrosMax = 50
const heapGrowthMax = 8 * 1024 * 1024

vi.setConfig({ testTimeout: 3_600_000 })

interface Sample {
  readonly at: number
  readonly micros: number
}

/** How long single packets take, without the collections of garbage and the time of other processes. */
class PacketTimes {
  #slow: Sample[] = []
  readonly #settled: number[] = []
  #count = 0
  readonly #collections: { readonly from: number; readonly to: number }[] = []

  constructor() {
    const observer = new PerformanceObserver((list) => {
      for (const { startTime, duration } of list.getEntries())
        this.#collections.push({ from: startTime, to: startTime + duration })
    })
    observer.observe({ entryTypes: ['gc'] })
    onTestFinished(() => observer.disconnect())
  }

  measure(run: () => void): void {
    const cpu = process.cpuUsage()
    const at = performance.now()
    run()
    const micros = (performance.now() - at) * 1_000
    this.#count += 1
    if (micros < slowMicrosMin) return
    const { user, system } = process.cpuUsage(cpu)
    this.#slow.push({ at, micros: Math.min(micros, user + system) })
  }

  /** Waits for the observer, and forgets the samples within collections. */
  async settle(): Promise<void> {
    await setImmediate()
    await setImmediate()
    for (const { at, micros } of this.#slow) {
      const end = at + micros / 1_000
      if (!this.#collections.some(({ from, to }) => from <= end && to >= at)) this.#settled.push(micros)
    }
    this.#slow = []
    this.#collections.length = 0
  }

  /** In microseconds; the least that is measured for those that are faster. */
  percentile(share: number): number {
    const rank = Math.floor(this.#count * (1 - share))
    return this.#settled.toSorted((a, b) => b - a)[rank] ?? slowMicrosMin
  }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heldBytes(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Publishers that come and go, and pauses in which the stage fills the gap. */
class Publishers {
  readonly #random: Random
  readonly #packets: MutatedPackets
  readonly #stage: Stage
  #publication: Publication | undefined
  #now = 1_000
  sentBytes = 0

  constructor(random: Random) {
    this.#random = random
    this.#packets = new MutatedPackets(random)
    this.#stage = new Stage({
      send: (data) => {
        this.sentBytes += data.length
      },
      flush: () => {},
      findSlate: () => (random.chance(0.9) ? Buffer.alloc(2_000, 7) : undefined),
      newestPlayer: () => 0,
      now: () => this.#now,
    })
    onTestFinished(() => this.#stage.close())
  }

  /** @returns what the next packet has the stage do. */
  next(): () => void {
    const publication = this.#publication
    const chance = this.#random.next()
    if (publication === undefined || chance < 0.0005) return () => this.#change(publication)
    if (chance < 0.001) this.#pause()
    this.#now += 1
    const bytes = this.#packets.next()
    return () => publication.write(bytes)
  }

  /** Another publisher, before or after the end of the present one. */
  #change(former: Publication | undefined): void {
    const isLate = this.#random.chance(0.5)
    if (!isLate) former?.end()
    this.#stage.show({ mode: this.#random.pick(onLossModes), slate: null, format: null })
    this.#packets.restart()
    this.#publication = this.#stage.publish()
    this.#publication.received()
    if (isLate) former?.end()
  }

  #pause(): void {
    for (let ticks = this.#random.between(1, 120); ticks > 0; ticks -= 1) {
      this.#now += 40
      this.#stage.tick()
    }
  }
}

test(`${packets} damaged packets cause no exception, no growth of memory and no long work`, async () => {
  const random = createRandom(seed)
  const publishers = new Publishers(random)
  const times = new PacketTimes()
  let bytesBefore = Number.POSITIVE_INFINITY
  for (let done = 0; done < packets; done += 1) {
    times.measure(publishers.next())
    if (done % batch === 0) await times.settle()
    if (done === Math.floor(packets / 5)) bytesBefore = heldBytes()
  }
  await times.settle()
  const grownBytes = heldBytes() - bytesBefore
  const [usual, rare] = [times.percentile(0.99), times.percentile(0.9999)]
  process.stdout.write(
    `[fuzz] seed ${seed}, ${packets} packets: p99 ≤ ${usual} µs, p99.99 ${rare} µs, grown by ${grownBytes} bytes\n`,
  )
  expect(publishers.sentBytes).toBeGreaterThan(packets)
  expect(grownBytes).toBeLessThan(heapGrowthMax)
  expect(rare).toBeLessThanOrEqual(slowMicrosMax)
})
