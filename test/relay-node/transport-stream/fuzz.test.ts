/**
 * The stage with streams that are damaged in every way. `npm run soak -- picture` takes 10 million packets.
 */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type OnLoss, onLossModes } from '../../../domain/relay/on-loss.ts'
import { type Publication, Stage } from '../../../relay-node/transport-stream/stage.ts'
import { createRandom } from '../../support/random.ts'
import { MutatedPackets } from './mutated-packets.ts'

const packets = Number(process.env.PICTURE_FUZZ_PACKETS ?? 100_000)
const seed = Number(process.env.PICTURE_SEED ?? 36)
const batch = 10_000
const slowMicrosMin = 5
const slowMicrosMax = 50
/** Of the packets before which the publisher changes, and before which it pauses. */
const changeShare = 0.00003
const stageCount = 3
const slate = Buffer.alloc(2_000, 7)
const heapGrowthMax = 8 * 1024 * 1024

vi.setConfig({ testTimeout: 3_600_000 })

/**
 * How long single packets take. Several stages do the same, and the fastest counts: collections of garbage and other
 * processes do not stop all of them at the same packet.
 */
class PacketTimes {
  readonly #slow: number[] = []
  #count = 0

  measure(works: readonly (() => void)[]): void {
    let least = Number.POSITIVE_INFINITY
    for (const work of works) {
      const at = performance.now()
      work()
      least = Math.min(least, performance.now() - at)
    }
    this.#count += 1
    if (least * 1_000 > slowMicrosMin) this.#slow.push(least * 1_000)
  }

  /** In microseconds; the least that is kept for those that are faster. */
  percentile(share: number): number {
    const rank = Math.floor(this.#count * (1 - share))
    return Math.round(this.#slow.toSorted((a, b) => b - a)[rank] ?? slowMicrosMin)
  }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heldBytes(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

class FuzzedStage {
  now = 1_000
  isSlateReady = true
  sentBytes = 0
  publication: Publication | undefined
  readonly stage = new Stage({
    send: (data) => {
      this.sentBytes += data.length
    },
    flush: () => {},
    findSlate: () => (this.isSlateReady ? slate : undefined),
    newestPlayer: () => 0,
    now: () => this.now,
  })

  /** Another publisher, before or after the end of the present one. */
  change(mode: OnLoss, isLate: boolean): void {
    const former = this.publication
    if (!isLate) former?.end()
    this.stage.show({ mode, slate: null, format: null })
    this.publication = this.stage.publish()
    this.publication.received()
    if (isLate) former?.end()
  }

  pause(ticks: number): void {
    for (let left = ticks; left > 0; left -= 1) {
      this.now += 40
      this.stage.tick()
    }
  }
}

test(`${packets} damaged packets cause no exception, no growth of memory and no long work`, async () => {
  const random = createRandom(seed)
  const damaged = new MutatedPackets(random)
  const stages = Array.from({ length: stageCount }, () => new FuzzedStage())
  onTestFinished(() => {
    for (const { stage } of stages) stage.close()
  })
  const times = new PacketTimes()
  let bytesBefore = Number.POSITIVE_INFINITY
  for (let done = 0; done < packets; done += 1) {
    if (done === 0 || random.chance(changeShare)) {
      const [mode, isLate] = [random.pick(onLossModes), random.chance(0.5)]
      damaged.restart()
      for (const each of stages) each.change(mode, isLate)
    }
    if (random.chance(changeShare)) {
      const [ticks, isSlateReady] = [Math.ceil(random.between(0, 120)), random.chance(0.9)]
      for (const each of stages) {
        each.isSlateReady = isSlateReady
        each.pause(ticks)
      }
    }
    const bytes = damaged.next()
    times.measure(
      stages.map((each) => {
        // A stage writes into the packets.
        const own = Buffer.from(bytes)
        each.now += 1
        return () => each.publication?.write(own)
      }),
    )
    if (done % batch === 0) await setImmediate()
    if (done === Math.floor(packets / 5)) bytesBefore = heldBytes()
  }
  const grownBytes = heldBytes() - bytesBefore
  // In a short run most of the slowest packets are those before the code is compiled.
  const share = packets >= 1_000_000 ? 0.9999 : 0.999
  const slowest = times.percentile(share)
  process.stdout.write(
    `[fuzz] seed ${seed}, ${packets} packets: p${100 * share} ≤ ${slowest} µs, grown by ${grownBytes} bytes\n`,
  )
  expect(stages[0]?.sentBytes).toBeGreaterThan(packets)
  expect(grownBytes).toBeLessThan(heapGrowthMax)
  expect(slowest).toBeLessThanOrEqual(slowMicrosMax)
})
