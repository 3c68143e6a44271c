/** A stream of numbered blocks through an encoder, a bonding sender and emulated links, and what each of them saw. */
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isData, isLossReport, sequenceNumberOf } from '../relay-node/srt-packets.ts'
import type { SrtlaSender } from '../test/support/srtla-sender.ts'

/** The payload of an SRT packet by custom: 7 packets of MPEG-TS. */
export const blockBytes = 1_316
const mark = 0x4742_4c4b

/** Writes blocks at a constant rate until it is stopped. */
export class BlockSource {
  written = 0
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout

  constructor(target: Writable, kbps: number) {
    const blocksPerMilli = kbps / 8 / blockBytes
    this.#timer = setInterval(() => {
      const due = Math.floor((performance.now() - this.#startedAt) * blocksPerMilli)
      for (; this.written < due; this.written += 1) target.write(buildBlock(this.written))
    }, 2)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

function buildBlock(index: number): Buffer {
  const block = Buffer.alloc(blockBytes, index & 0xff)
  block.writeUInt32BE(mark, 0)
  block.writeUInt32BE(index, 4)
  return block
}

/** Reads blocks, each in one piece, since SRT delivers whole messages. */
export class BlockSink {
  readonly received = new Set<number>()
  #first = Number.POSITIVE_INFINITY
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: Readable) {
    source.on('data', (chunk: Buffer) => {
      const bytes = Buffer.concat([this.#rest, chunk])
      let offset = 0
      for (; offset + blockBytes <= bytes.length; offset += blockBytes) this.#receive(bytes, offset)
      this.#rest = bytes.subarray(offset)
    })
  }

  /** Those between the first block that arrived and the one with the number `written`. */
  missing(written: number): number {
    let missing = 0
    for (let index = this.#first; index < written; index += 1) if (!this.received.has(index)) missing += 1
    return missing
  }

  #receive(bytes: Buffer, offset: number): void {
    if (bytes.readUInt32BE(offset) !== mark) throw new Error('the player received bytes that are no block')
    const index = bytes.readUInt32BE(offset + 4)
    this.#first = Math.min(this.#first, index)
    this.received.add(index)
  }
}

export interface LinkFigures {
  /** Data packets that left, with repeats. */
  readonly packets: number
  readonly repeats: number
  /** Repeats of which an earlier copy arrives. */
  readonly needless: number
  /** Datagrams with loss reports that arrived over the links. */
  readonly lossReports: number
  /** Of the first link, in percent of {@link packets}. */
  readonly sharePct: number
  /** Of all datagrams in both directions. */
  readonly linkBytes: number
  /** Of the stream, each packet once. */
  readonly payloadBytes: number
}

/** Counts what leaves over the links of the sender from now on. */
export function countLinks(sender: SrtlaSender): () => LinkFigures {
  const bytesBefore = sumOfBytes(sender)
  /** By sequence number: whether a copy arrives. */
  const arriving = new Map<number, boolean>()
  const counted = { packets: 0, repeats: 0, needless: 0, lossReports: 0, first: 0 }
  sender.onSent = (datagram, link, willArrive) => {
    if (!isData(datagram)) return
    counted.packets += 1
    if (link === sender.links[0]) counted.first += 1
    const number = sequenceNumberOf(datagram)
    const isArriving = arriving.get(number)
    if (isArriving !== undefined) counted.repeats += 1
    if (isArriving === true) counted.needless += 1
    arriving.set(number, willArrive || isArriving === true)
  }
  sender.onReceived = (datagram) => {
    if (isLossReport(datagram)) counted.lossReports += 1
  }
  return () => ({
    ...counted,
    sharePct: (counted.first / counted.packets) * 100,
    linkBytes: sumOfBytes(sender) - bytesBefore,
    payloadBytes: arriving.size * blockBytes,
  })
}

const sumOfBytes = ({ links }: SrtlaSender): number => links.reduce((sum, { bytes }) => sum + bytes, 0)

/** Resolves when all links are registered. */
export async function untilRegistered(sender: SrtlaSender): Promise<void> {
  const until = performance.now() + 10_000
  while (!sender.links.every(({ isActive }) => isActive)) {
    if (performance.now() > until) throw new Error('the links were not registered within 10 s')
    await sleep(20)
  }
}
