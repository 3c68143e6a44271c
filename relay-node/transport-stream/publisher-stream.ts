/**
 * The stream of one publisher on its way to the players. It comes on the air with a key frame, and then passes as it
 * is, with the times, counters and tables of the players' stream.
 */
import { LivePackets, unitAt } from './live-packets.ts'
import type { OnAir } from './on-air.ts'
import { isScrambled, makeNull, nullPid, packetBytes, payloadAt, pidOf, startsUnit, syncByte } from './packet.ts'
import { beginsWithPackets, nextPacket } from './packet-search.ts'
import { readPesHeader } from './pes.ts'
import { type PublishedStream, PublisherProgram } from './publisher-program.ts'
import { distanceOf, isJump, PublisherTimes } from './publisher-times.ts'
import { ticksPerMilli, ticksPerSecond } from './stream-times.ts'

/** A stream without key frames comes on the air without. */
const keyFrameMillisMax = 10_000
/** Of a stream that is not understood yet, which is held back no longer. */
const unreadMillisMax = 2_000
const unreadBytesMax = 500_000
/** Of a picture whose kind is not known yet. */
const heldPacketsMax = 400
/** Within this a stream that was interrupted keeps its times. */
const keptOffsetTicksMax = 200 * ticksPerMilli
/** Between a clock reference and the times of pictures. */
const referenceDistanceMax = 10 * ticksPerSecond

export class PublisherStream {
  /** The number of the latest player when data of the publisher arrived last. */
  newest = 0
  readonly #air: OnAir
  readonly #number: number
  readonly #program = new PublisherProgram()
  readonly #times = new PublisherTimes()
  readonly #live: LivePackets
  #rest: Buffer = Buffer.alloc(0)
  #kind: 'unknown' | 'packets' | 'untouched'
  /** All data so far, until the stream is understood. */
  #unread: Buffer[] | undefined = []
  #unreadBytes = 0
  #unreadSince: number | undefined
  #isOnAir = false
  #waitingSince: number | undefined
  /** Packets of a picture that may be a key frame, while the stream is not on the air. */
  #held: Buffer[] | undefined
  #heldTime = 0
  #heldShownAt = 0
  #heldReference: number | undefined
  /** It goes on after silence, if none of its packets are missing. */
  #isResuming = false
  /** Where the packets begin that pass; -1 while none does. */
  #runAt = -1
  #isInserted = false

  /** @param number of the publisher, which grows. @param isUntouched it passes as it is in any case. */
  constructor(air: OnAir, number: number, isUntouched: boolean) {
    this.#air = air
    this.#number = number
    this.#kind = isUntouched ? 'untouched' : 'unknown'
    const insert = (data: Buffer, at: number, push: () => void) => this.#insert(data, at, push)
    this.#live = new LivePackets({ air, program: this.#program, times: this.#times, insert })
  }

  get isUntouched(): boolean {
    return this.#kind === 'untouched'
  }

  /** @param now milliseconds of a clock that never goes back. */
  write(chunk: Buffer, now: number): void {
    if (this.#air.isSuperseded(this.#number)) return
    if (this.#kind === 'untouched') {
      this.#air.passUntouched(this.#number, chunk, this.newest)
      return
    }
    this.#times.now = now
    this.#keepUnread(chunk)
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (this.#kind === 'unknown') {
      const begins = beginsWithPackets(data)
      if (begins === undefined) {
        this.#rest = Buffer.from(data)
        return
      }
      if (!begins) {
        this.#giveUp(data)
        return
      }
      this.#kind = 'packets'
    }
    this.#readPackets(data)
    this.#dropUnread()
    if (this.isUntouched) return
    this.#air.player.flush({ isAligned: this.#isInserted, newest: this.newest })
    if (this.#isOnAir) this.#air.filler.end(now)
  }

  end(): void {
    if (this.#isOnAir && !this.#air.isSuperseded(this.#number))
      this.#air.player.flush({ isAligned: true, newest: this.newest })
    const isUnknown = this.#unreadBytes > 0 && this.#program.program === undefined && !this.isUntouched
    if (isUnknown && !this.#air.isSuperseded(this.#number)) this.#giveUp(Buffer.alloc(0))
  }

  #keepUnread(chunk: Buffer): void {
    if (this.#unread === undefined) return
    this.#unreadSince ??= this.#times.now
    this.#unreadBytes += chunk.length
    this.#unread.push(chunk)
  }

  /** Once the stream is understood, or has had its time. One that has named no program by then passes as it is. */
  #dropUnread(): void {
    if (this.#unread === undefined) return
    const { program, lead } = this.#program
    const millis = this.#times.now - (this.#unreadSince ?? this.#times.now)
    const isLate = millis > unreadMillisMax || this.#unreadBytes > unreadBytesMax
    if (isLate && program === undefined) this.#giveUp(Buffer.alloc(0))
    else if (isLate || lead?.counter !== undefined) this.#unread = undefined
  }

  /** @param data that are not sent yet, of a stream that was understood. */
  #giveUp(data: Buffer): void {
    const unsent = this.#unread ? Buffer.concat(this.#unread) : data
    this.#kind = 'untouched'
    this.#rest = Buffer.alloc(0)
    this.#unread = undefined
    this.#air.passUntouched(this.#number, unsent, this.newest)
  }

  #readPackets(data: Buffer): void {
    this.#isInserted = false
    if (this.#isOnAir && this.#air.filler.isFilling) this.#resume()
    this.#runAt = this.#isOnAir ? 0 : -1
    let at = 0
    while (at + packetBytes <= data.length) {
      if (data[at] !== syncByte) {
        this.#endRun(data, at)
        at = nextPacket(data, at)
        if (this.#isOnAir) this.#runAt = at
        continue
      }
      if (!this.#readPacket(data, at)) {
        this.#giveUp(data.subarray(at))
        return
      }
      at += packetBytes
    }
    this.#endRun(data, Math.min(at, data.length))
    this.#rest = at >= data.length ? Buffer.alloc(0) : Buffer.from(data.subarray(at))
  }

  /** After a picture only a key frame can follow. After silence the stream may go on. */
  #resume(): void {
    if (this.#air.filler.hasShownPicture) this.#isOnAir = false
    this.#isResuming = this.#isOnAir
    this.#live.expectAudio()
    this.#waitingSince = undefined
  }

  /** The packets up to here pass. */
  #endRun(data: Buffer, at: number): void {
    if (this.#runAt >= 0 && at > this.#runAt) this.#air.player.push(data.subarray(this.#runAt, at))
    this.#runAt = -1
  }

  /** @returns false for a stream that the stage does not understand. */
  #readPacket(data: Buffer, at: number): boolean {
    const pid = pidOf(data, at)
    if (pid === nullPid) return true
    const program = this.#program
    if (pid === 0) {
      const result = program.readPatPacket(data, at)
      if (result === 'unknown') return false
      this.#passTable('pat', data, at)
      return true
    }
    if (pid === program.pmtPid) {
      if (program.readPmtPacket(data, at) === 'changed') this.#leaveAir(data, at)
      this.#passTable('pmt', data, at)
      return true
    }
    const stream = program.streams.get(pid)
    if (stream !== undefined) {
      // A damaged packet of a clear stream looks like a scrambled one.
      if (stream === program.lead && stream.counter === undefined && isScrambled(data, at)) return false
      this.#readStream(stream, data, at)
    } else this.#passOther(data, at, pid)
    return true
  }

  /** Puts the players' table in the place of the publisher's. */
  #passTable(name: 'pat' | 'pmt', data: Buffer, at: number): void {
    if (!this.#isOnAir) return
    const table = startsUnit(data, at) ? this.#air.player.table(name) : undefined
    if (table?.length === packetBytes) table.copy(data, at)
    else {
      this.#insert(data, at, () => this.#air.player.push(table ?? Buffer.alloc(0)))
      makeNull(data, at)
    }
  }

  #passOther(data: Buffer, at: number, pid: number): void {
    this.#times.readReference(data, at, pid === this.#program.program?.pcrPid)
    if (this.#isOnAir) this.#live.passOther(data, at, pid)
  }

  #readStream(stream: PublishedStream, data: Buffer, at: number): void {
    const isRepeat = this.#program.countPacket(stream, data, at)
    this.#times.readReference(data, at, stream.pid === this.#program.program?.pcrPid)
    const isLead = stream === this.#program.lead
    if (this.#isOnAir && isLead && this.#hasToLeave(data, at)) this.#leaveAir(data, at)
    if (this.#isOnAir) this.#live.pass(stream, data, at, isRepeat)
    else this.#holdPacket(stream, data, at)
  }

  /** Whether a packet of the lead cannot follow the one before it. */
  #hasToLeave(data: Buffer, at: number): boolean {
    const times = this.#times
    const { lead } = this.#program
    if (this.#isResuming && this.#program.hasLoss) return true
    if (!startsUnit(data, at)) return false
    const time = times.timeOf(readPesHeader(data, payloadAt(data, at), at + packetBytes))
    if (lead === undefined || time === undefined || times.offset === undefined) return false
    if (isJump(lead, time, times.now)) {
      times.forget()
      return true
    }
    const isResuming = this.#isResuming
    this.#isResuming = false
    return isResuming && !this.#air.player.canContinue(times.offset, time, undefined)
  }

  /** The stream waits for a key frame. */
  #leaveAir(data: Buffer, at: number): void {
    this.#endRun(data, at)
    this.#isOnAir = false
    this.#isResuming = false
    this.#waitingSince = undefined
    this.#held = undefined
  }

  #holdPacket(stream: PublishedStream, data: Buffer, at: number): void {
    const { keyFrames, lead } = this.#program
    if (stream === lead && startsUnit(data, at)) {
      const header = readPesHeader(data, payloadAt(data, at), at + packetBytes)
      const time = this.#times.timeOf(header)
      this.#waitingSince ??= this.#times.now
      keyFrames?.next()
      this.#held = time === undefined ? undefined : []
      this.#heldTime = time ?? 0
      this.#heldShownAt = this.#heldTime + distanceOf(header)
      this.#heldReference = undefined
    }
    if (this.#held === undefined) return
    if (this.#held.length === 0) this.#heldReference = this.#times.reference
    this.#held.push(Buffer.from(data.subarray(at, at + packetBytes)))
    if (stream === lead) this.#judgeHeld(data, at)
  }

  /** Comes on the air when the picture that is held begins a stream. */
  #judgeHeld(data: Buffer, at: number): void {
    const { keyFrames } = this.#program
    const hasWaited = this.#times.now - (this.#waitingSince ?? this.#times.now) > keyFrameMillisMax
    if (keyFrames !== undefined && !hasWaited) {
      keyFrames.push(data, unitAt(data, at), at + packetBytes)
      if (!keyFrames.isDecided) {
        if ((this.#held?.length ?? 0) > heldPacketsMax) this.#held = undefined
        return
      }
      if (!keyFrames.isKeyFrame) {
        this.#held = undefined
        return
      }
    }
    const held = Buffer.concat(this.#held ?? [])
    this.#held = undefined
    this.#enterAir()
    for (let each = 0; each < held.length; each += packetBytes) {
      const stream = this.#program.streams.get(pidOf(held, each))
      if (stream !== undefined) this.#live.pass(stream, held, each, false)
    }
    this.#air.player.push(held)
    this.#runAt = at + packetBytes
    this.#isInserted = true
  }

  #enterAir(): void {
    const { player } = this.#air
    const { program, streams, lead } = this.#program
    if (program === undefined) return
    this.#air.finishFiller()
    const isKept = this.#setOffset()
    for (const [pid, playerPid] of player.setProgram(program)) {
      const stream = streams.get(pid)
      if (stream !== undefined) stream.playerPid = playerPid
    }
    player.pushTables()
    for (const stream of streams.values()) {
      stream.time = undefined
      stream.strayedAt = undefined
      // The rest of a unit that began before.
      stream.isDropped = stream !== lead
    }
    this.#isOnAir = true
    this.#live.enter()
    this.#air.enter(this.#number, !isKept)
  }

  /** @returns whether the stream goes on with the times that it had. */
  #setOffset(): boolean {
    const { player } = this.#air
    const times = this.#times
    const { now, offset } = times
    const time = this.#heldTime
    const held = this.#heldReference ?? times.reference
    const reference = held !== undefined && Math.abs(held - time) < referenceDistanceMax ? held : undefined
    const isKept =
      offset !== undefined &&
      Math.abs(time + offset - player.clock.at(now)) < keptOffsetTicksMax &&
      player.canContinue(offset, time, reference)
    const next = isKept ? offset : player.offsetFor({ time, shownAt: this.#heldShownAt, reference }, now)
    times.offset = next
    player.clock.set(time + next, now)
    return isKept
  }

  /** Sends something before the packet. */
  #insert(data: Buffer, at: number, push: () => void): void {
    const isRunning = this.#runAt >= 0
    this.#endRun(data, at)
    push()
    if (isRunning) this.#runAt = at
    this.#isInserted = true
  }
}
