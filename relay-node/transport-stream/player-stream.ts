/**
 * The stream that the players of a relay receive: one timeline over all publishers. It has its own counters and tables,
 * and its times never go back.
 */
import type { AudioFormat } from '../../domain/relay/stream-format.ts'
import {
  counterOf,
  hasPayload,
  nullPackets,
  nullPid,
  packetBytes,
  packetize,
  pcrPacket,
  pidOf,
  setCounter,
} from './packet.ts'
import { buildPes } from './pes.ts'
import { PlayerProgram } from './player-program.ts'
import type { Program } from './program-tables.ts'
import { silentFrame } from './silence.ts'
import { MediaClock, ticksPerMilli, ticksPerSecond, wrapClock, wrapTime } from './stream-times.ts'
import type { VideoCodec } from './video-units.ts'

/** Seven packets are the payload of an SRT packet. */
const blockPackets = 7
/** Between two clock references, in ticks. */
const clockStep = 40 * ticksPerMilli
/** ISO/IEC 13818-1, section 2.7.2. */
const referenceDistanceMax = 100 * ticksPerMilli
const missingReferencesMax = ticksPerSecond
const clockLeadMin = 200 * ticksPerMilli
const clockLeadMax = 3 * ticksPerSecond
/** More silence is not sent at once. */
const silentFramesMax = 400
const videoStreamId = 0xe0
const audioStreamId = 0xc0
const privateStreamId = 0xbd

/** Of audio that was sent, with the length of a frame in ticks. */
export type SentAudio = AudioFormat & { readonly frameTicks: number }

/** @param newest the number of the latest player that gets the data; without one all do. */
export type Send = (data: Buffer, newest?: number) => void

export class PlayerStream {
  readonly clock = new MediaClock()
  /** Of live data and of fillers. */
  lastVideoTime: number | undefined
  /** The time at which the audio that was sent ends. */
  audioEnd: number | undefined
  /** How far the end of the audio is ahead of the clock while a stream arrives, in ticks. */
  audioLead = 0
  #lastShownAt = Number.NEGATIVE_INFINITY
  readonly #send: Send
  readonly #program = new PlayerProgram()
  readonly #counters = new Uint8Array(8192).fill(255)
  #queue: Buffer[] = []
  #queuedBytes = 0
  #packets = 0
  #lastReference: number | undefined
  /** The most by which a clock reference was behind the picture that came with it. */
  #clockLead = clockLeadMin
  #silence: { readonly format: SentAudio; readonly frame: Buffer | undefined } | undefined

  constructor(send: Send) {
    this.#send = send
  }

  get program(): Program | undefined {
    return this.#program.program
  }

  get videoCodec(): VideoCodec | undefined {
    return this.#program.video?.codec
  }

  has(pid: number): boolean {
    return this.#program.has(pid)
  }

  setProgram(program: Program): Map<number, number> {
    return this.#program.set(program)
  }

  /** Puts the next counter of its stream into a packet. @param isRepeat the packet is a copy of the one before it. */
  stamp(data: Buffer, at: number, isRepeat = false): void {
    const pid = pidOf(data, at)
    const last = this.#counters[pid] ?? 255
    if (last === 255) {
      this.#counters[pid] = counterOf(data, at)
      return
    }
    const next = isRepeat || !hasPayload(data, at) ? last : (last + 1) % 16
    setCounter(data, at, next)
    this.#counters[pid] = next
  }

  /** Whole packets that are ready to be sent. */
  push(packets: Buffer): void {
    if (packets.length === 0) return
    this.#queue.push(packets)
    this.#queuedBytes += packets.length
  }

  /** Packets with counters of 0. */
  pushStamped(packets: Buffer): void {
    for (let at = 0; at < packets.length; at += packetBytes) this.stamp(packets, at)
    this.push(packets)
  }

  /** @returns the table for the place of the publisher's. */
  table(name: 'pat' | 'pmt'): Buffer | undefined {
    const table = this.#program.tables?.[name]
    if (table === undefined) return undefined
    const packets = Buffer.from(table)
    for (let at = 0; at < packets.length; at += packetBytes) this.stamp(packets, at)
    return packets
  }

  pushTables(): void {
    for (const name of ['pat', 'pmt'] as const) this.push(this.table(name) ?? Buffer.alloc(0))
  }

  /** Sends what was pushed. @param isAligned fills up the last block, so that none of it waits for more. */
  flush({ isAligned, newest }: { readonly isAligned: boolean; readonly newest?: number }): void {
    const rest = (this.#packets + this.#queuedBytes / packetBytes) % blockPackets
    if (isAligned && rest > 0) this.push(nullPackets(blockPackets - rest))
    const [first, second] = this.#queue
    if (first === undefined) return
    const data = second === undefined ? first : Buffer.concat(this.#queue)
    this.#packets = (this.#packets + data.length / packetBytes) % blockPackets
    this.#queue = []
    this.#queuedBytes = 0
    this.#send(data, newest)
  }

  /** Data of another kind were sent in between. */
  align(): void {
    this.#packets = 0
  }

  /**
   * The constant between the times of a publisher and those of the players, for a stream that begins now.
   * @param time of the first picture, which is shown at `shownAt`. @param reference of the clock that came with it.
   */
  offsetFor(
    { time, shownAt, reference }: { time: number; shownAt: number; reference: number | undefined },
    now: number,
  ): number {
    if (!this.clock.isSet) return 0
    const afterLast = (this.lastVideoTime ?? Number.NEGATIVE_INFINITY) + ticksPerMilli - time
    const afterLastShown = this.#lastShownAt + ticksPerMilli - shownAt
    const offset = Math.ceil(Math.max(this.clock.at(now) - time, afterLast, afterLastShown))
    if (reference === undefined || this.#lastReference === undefined) return offset
    return Math.max(offset, Math.ceil(this.#lastReference + 1 - reference))
  }

  /** Whether a stream may go on with the constant that it had. */
  canContinue(offset: number, time: number, reference: number | undefined): boolean {
    const isLater = time + offset > (this.lastVideoTime ?? Number.NEGATIVE_INFINITY)
    return (
      isLater && (reference === undefined || reference + offset > (this.#lastReference ?? Number.NEGATIVE_INFINITY))
    )
  }

  /**
   * @param distance from the time of the picture to when it is shown.
   * @returns the time of a picture in the stream, which is later than that of the one before.
   */
  videoTime(wanted: number, distance = 0): number {
    const time = this.lastVideoTime === undefined ? wanted : Math.max(wanted, this.lastVideoTime + 1)
    this.lastVideoTime = time
    this.#lastShownAt = Math.max(this.#lastShownAt, time + distance)
    return time
  }

  /** @returns the clock reference in units of 27 MHz, for the packet of a publisher. */
  reference(ticks: number): number {
    const last = this.#lastReference ?? ticks - 1
    const reference = ticks >= last + 1 / 300 ? ticks : last + 1 / 300
    this.#lastReference = reference
    const lead = (this.lastVideoTime ?? reference) - reference
    if (lead > this.#clockLead && lead <= clockLeadMax) this.#clockLead = lead
    return wrapClock(reference)
  }

  /** Clock references between the last one and the next, after a short pause of the publisher. */
  pushMissingReferences(next: number): void {
    const pid = this.program?.pcrPid
    const last = this.#lastReference
    if (pid === undefined || last === undefined || next - last > missingReferencesMax) return
    for (let ticks = last + clockStep; ticks < next - 1; ticks += clockStep) this.#pushReference(pid, ticks)
  }

  /** Whether a clock reference is so late that some are missing before it. */
  isReferenceLate(next: number): boolean {
    const distance = next - (this.#lastReference ?? next)
    return distance > referenceDistanceMax && distance <= missingReferencesMax
  }

  /** Clock references from the last one up to now. They fall behind the clock as far as a publisher's did. */
  pushReferences(now: number, elapsedMillis: number): void {
    const pid = this.program?.pcrPid
    if (pid === undefined || pid === nullPid) return
    const clock = this.clock.at(now)
    const last = this.#lastReference ?? clock - this.#clockLead - clockStep
    const slow = Math.min(last + (elapsedMillis * ticksPerMilli) / 2, clock - 1)
    const end = Math.max(clock - this.#clockLead, slow)
    // A longer pause is a jump, as after half an hour without a slate.
    let next = end - last > 60 * ticksPerSecond ? end : last + clockStep
    for (; next < end - 1; next += clockStep) this.#pushReference(pid, next)
    if (end >= last + 1) this.#pushReference(pid, end)
  }

  #pushReference(pid: number, ticks: number): void {
    this.#lastReference = ticks
    this.pushStamped(pcrPacket(pid, wrapClock(ticks)))
  }

  /** Silence up to a time, in whole frames. Nothing for a format without silence. */
  pushSilence(format: SentAudio, until: number): void {
    const pid = this.#program.audioPid
    if (pid === undefined) return
    const { frameTicks } = format
    if (this.#silence?.format !== format) this.#silence = { format, frame: silentFrame(format) }
    const { frame } = this.#silence
    if (frame === undefined) return
    // Nothing is owed for a pause that is longer than what is sent at once, nor for what players have passed.
    const owedFrom = Math.max(until - silentFramesMax * frameTicks, this.#lastReference ?? Number.NEGATIVE_INFINITY)
    let time = Math.max(this.audioEnd ?? until - frameTicks, Math.ceil(owedFrom))
    const streamId = format.codec === 'opus' ? privateStreamId : audioStreamId
    for (; time + frameTicks <= until; time += frameTicks)
      this.pushStamped(packetize(pid, buildPes({ streamId, pts: wrapTime(time), payload: frame })))
    this.audioEnd = time
  }

  /** A picture of a filler, which is shown at once, but after those of the publisher that are shown later. */
  pushPicture(unit: Buffer, time: number, options: { readonly isRandomAccess?: boolean }): void {
    const pid = this.#program.video?.pid
    if (pid === undefined) return
    const rounded = Math.round(time)
    const late = Math.max(this.#lastShownAt + ticksPerMilli - rounded, 0)
    const decodedAt = this.videoTime(rounded, late)
    const [pts, dts] = [wrapTime(decodedAt + late), wrapTime(decodedAt)]
    const pes = buildPes({ streamId: videoStreamId, pts, ...(late > 0 ? { dts } : {}), payload: unit })
    this.pushStamped(packetize(pid, pes, options))
  }
}
