/** Passes the packets of a publisher that is on the air to the players, with the times and counters of their stream. */
import type { OnAir } from './on-air.ts'
import {
  clearDiscontinuity,
  makeNull,
  packetBytes,
  payloadAt,
  pcrPacket,
  readPcr,
  setPid,
  startsUnit,
  writePcr,
} from './packet.ts'
import { type PesHeader, readPesHeader, writeTimestamp } from './pes.ts'
import { type PublishedStream, type PublisherProgram, readAudio } from './publisher-program.ts'
import { distanceOf, isJump, type PublisherTimes } from './publisher-times.ts'
import { ticksPerSecond, wrapTime } from './stream-times.ts'

/** How long audio that does not fit the pictures waits for pictures that do. */
const strayMillisMax = 1_000
/** A longer pause before the audio of a stream stays one. */
const filledAudioTicksMax = ticksPerSecond

export interface LivePacketsOptions {
  readonly air: OnAir
  readonly program: PublisherProgram
  readonly times: PublisherTimes
  /** Sends something before the packet. */
  readonly insert: (data: Buffer, at: number, push: () => void) => void
}

export class LivePackets {
  readonly #air: OnAir
  readonly #program: PublisherProgram
  readonly #times: PublisherTimes
  readonly #insert: LivePacketsOptions['insert']
  /** No picture has passed that comes after the key frame when shown. */
  #isAfterEntry = false
  #isAudioDue = false

  constructor({ air, program, times, insert }: LivePacketsOptions) {
    this.#air = air
    this.#program = program
    this.#times = times
    this.#insert = insert
  }

  /** The stream comes on the air. */
  enter(): void {
    this.#program.hasLoss = false
    this.#program.keyFrames?.next()
    this.#isAfterEntry = true
    this.#isAudioDue = true
  }

  /** The players have received silence. */
  expectAudio(): void {
    this.#isAudioDue = true
  }

  pass(stream: PublishedStream, data: Buffer, at: number, isRepeat: boolean): void {
    const { player } = this.#air
    const isLead = stream === this.#program.lead
    if (startsUnit(data, at)) {
      const from = payloadAt(data, at)
      const header = readPesHeader(data, from, at + packetBytes)
      const time = this.#times.timeOf(header)
      stream.isDropped = false
      if (isLead) this.#beginLeadUnit()
      if (header !== undefined && time !== undefined) {
        if (isLead) this.#passLeadUnit(stream, data, header, time)
        else if (stream === this.#program.audio) this.#passAudioUnit(stream, data, at, header, time)
        else this.#writeTimes(data, header, time + (this.#times.offset ?? 0), time)
        stream.time = time
        stream.at = this.#times.now
      }
    }
    if (isLead) {
      const { keyFrames } = this.#program
      keyFrames?.push(data, unitAt(data, at), at + packetBytes)
      if (this.#isAfterEntry && keyFrames?.isLeading) stream.isDropped = true
    }
    if (stream.isDropped) {
      this.#dropPacket(data, at)
      return
    }
    if (stream.playerPid !== stream.pid) setPid(data, at, stream.playerPid)
    this.#writeReference(data, at)
    player.stamp(data, at, isRepeat)
  }

  /** Packets of other streams than those of the program, and its clock where that has its own. */
  passOther(data: Buffer, at: number, pid: number): void {
    const { player } = this.#air
    const isClock = pid === this.#program.program?.pcrPid
    const playerPid = isClock ? player.program?.pcrPid : pid
    if (playerPid === undefined || (!isClock && player.has(pid))) {
      makeNull(data, at)
      return
    }
    if (playerPid !== pid) setPid(data, at, playerPid)
    this.#writeReference(data, at)
    player.stamp(data, at)
  }

  /** The clock goes on without the payload. */
  #dropPacket(data: Buffer, at: number): void {
    const { player } = this.#air
    const pcrPid = player.program?.pcrPid
    const pcr = pcrPid === undefined ? undefined : readPcr(data, at)
    if (pcr === undefined || pcrPid === undefined) {
      makeNull(data, at)
      return
    }
    pcrPacket(pcrPid, pcr).copy(data, at)
    this.#writeReference(data, at)
    player.stamp(data, at)
  }

  #beginLeadUnit(): void {
    const { keyFrames } = this.#program
    if (keyFrames?.isDecided && !keyFrames.isKeyFrame && !keyFrames.isLeading) this.#isAfterEntry = false
    const keyFrame = keyFrames?.next()
    if (keyFrame === undefined) return
    this.#program.hasLoss = false
    this.#air.keepKeyFrame(keyFrame)
    this.#program.format?.read(keyFrame)
    const format = this.#program.format?.format
    if (format !== undefined) this.#air.keepFormat(format)
  }

  #passLeadUnit(stream: PublishedStream, data: Buffer, header: PesHeader, time: number): void {
    const { player } = this.#air
    if (stream.time !== undefined) this.#program.format?.measure(time - stream.time)
    this.#times.near = time
    const out = player.videoTime(time + (this.#times.offset ?? 0), distanceOf(header))
    this.#writeTimes(data, header, out, time)
    player.clock.follow(out, this.#times.now)
  }

  #passAudioUnit(stream: PublishedStream, data: Buffer, at: number, header: PesHeader, time: number): void {
    const { player } = this.#air
    const { now, offset = 0 } = this.#times
    if (isJump(stream, time, now)) stream.strayedAt ??= now
    if (stream.strayedAt !== undefined && now - stream.strayedAt < strayMillisMax) {
      stream.isDropped = true
      return
    }
    if (stream.strayedAt !== undefined) {
      stream.strayedAt = undefined
      stream.time = undefined
    }
    readAudio(stream, data, header.payloadAt, at + packetBytes)
    const frameTicks = stream.audio?.frameTicks ?? 0
    const out = time + offset
    const isFirst = this.#isAudioDue
    // Half a frame of overlap is not heard.
    const isPast = (player.audioEnd ?? out) - out > frameTicks / 2
    if (isFirst ? isPast : stream.time !== undefined && time <= stream.time) {
      stream.isDropped = true
      return
    }
    this.#isAudioDue = false
    if (isFirst && stream.audio && out - (player.audioEnd ?? Number.NEGATIVE_INFINITY) < filledAudioTicksMax) {
      const { audio } = stream
      this.#insert(data, at, () => player.pushSilence(audio, out + frameTicks / 2))
    }
    if (stream.audio) this.#air.keepAudio(stream.audio)
    if (stream.time !== undefined) stream.unitTicks = Math.max(time - stream.time, 0)
    this.#writeTimes(data, header, out, time)
    player.audioEnd = out + Math.max(stream.unitTicks, frameTicks)
    player.audioLead = clampLead(player.audioEnd - player.clock.at(now))
  }

  #writeReference(data: Buffer, at: number): void {
    clearDiscontinuity(data, at)
    const reference = this.#times.referenceOf(data, at)
    if (reference === undefined) return
    const { player } = this.#air
    const ticks = reference + (this.#times.offset ?? 0)
    if (player.isReferenceLate(ticks)) this.#insert(data, at, () => player.pushMissingReferences(ticks))
    writePcr(data, at, player.reference(ticks))
  }

  #writeTimes(data: Buffer, header: PesHeader, out: number, time: number): void {
    if (out === time || header.pts === undefined) return
    writeTimestamp(data, header.ptsAt, wrapTime(out + distanceOf(header)))
    if (header.dts !== undefined) writeTimestamp(data, header.dtsAt, wrapTime(out))
  }
}

const clampLead = (ticks: number): number => Math.min(Math.max(ticks, -ticksPerSecond), ticksPerSecond)

/** Where the bytes of the elementary stream begin in a packet. */
export function unitAt(data: Buffer, at: number): number {
  const from = payloadAt(data, at)
  if (!startsUnit(data, at)) return from
  return readPesHeader(data, from, at + packetBytes)?.payloadAt ?? from
}
