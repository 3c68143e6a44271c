/** The program of one publisher: its tables, and what is known of each of its streams. */

import { type ReadAudio, readAudioFormat } from './audio-format.ts'
import { FormatReader } from './format-reader.ts'
import { KeyFrameCollector } from './key-frame.ts'
import { counterOf, hasPayload, packetBytes, startsUnit } from './packet.ts'
import { type Program, readPat, readPmt, SectionCollector } from './program-tables.ts'
import { isAudio, videoCodecOf } from './stream-kinds.ts'

/** One elementary stream of a publisher. */
export interface PublishedStream {
  readonly pid: number
  readonly type: number
  readonly descriptors: Buffer
  /** The id that the players see. */
  playerPid: number
  /** The counter of the last packet. */
  counter: number | undefined
  /** Of the last unit: its time in ticks, and when it arrived in milliseconds. */
  time: number | undefined
  at: number
  /** The present unit is not for the players. */
  isDropped: boolean
  /** Ticks from a unit to the next one. */
  unitTicks: number
  /** Since when its times do not fit those of the other streams. */
  strayedAt: number | undefined
  /** Of audio. */
  audio: ReadAudio | undefined
}

export type TableResult = 'unchanged' | 'changed' | 'unknown'

export class PublisherProgram {
  /** By packet id. */
  readonly streams = new Map<number, PublishedStream>()
  program: Program | undefined
  /** That of the pictures, or without any the first one. Live data begin with a unit of it. */
  lead: PublishedStream | undefined
  audio: PublishedStream | undefined
  /** Undefined for a stream whose pictures the relay cannot tell apart. */
  keyFrames: KeyFrameCollector | undefined
  format: FormatReader | undefined
  /** Packets of the pictures are missing since the last key frame. */
  hasLoss = false
  #pat: { readonly transportStreamId: number; readonly pmtPid: number } | undefined
  #patPacket = Buffer.alloc(0)
  #patSections = new SectionCollector()
  #pmtSections = new SectionCollector()
  #pmtSection = Buffer.alloc(0)

  get pmtPid(): number | undefined {
    return this.#pat?.pmtPid
  }

  /** `unknown`: the stream has several programs. */
  readPatPacket(data: Buffer, at: number): TableResult {
    const payload = data.subarray(at + 4, at + packetBytes)
    if (startsUnit(data, at) && payload.equals(this.#patPacket)) return 'unchanged'
    const section = this.#patSections.push(data, at)
    const pat = section && readPat(section)
    if (pat === undefined) return 'unchanged'
    this.#patPacket = Buffer.from(payload)
    const [first, second] = pat.programs
    if (first === undefined) return 'unchanged'
    if (second !== undefined) return 'unknown'
    if (first.pid === this.#pat?.pmtPid && pat.transportStreamId === this.#pat.transportStreamId) return 'unchanged'
    this.#pat = { transportStreamId: pat.transportStreamId, pmtPid: first.pid }
    this.#pmtSections = new SectionCollector()
    this.#pmtSection = Buffer.alloc(0)
    return 'changed'
  }

  readPmtPacket(data: Buffer, at: number): TableResult {
    const section = this.#pmtSections.push(data, at)
    if (section === undefined || this.#pat === undefined || section.equals(this.#pmtSection)) return 'unchanged'
    const program = readPmt(section, this.#pat)
    if (program === undefined || program.streams.length === 0) return 'unchanged'
    this.#pmtSection = Buffer.from(section)
    this.#use(program)
    return 'changed'
  }

  /** @returns whether the packet is a copy of the one before it. */
  countPacket(stream: PublishedStream, data: Buffer, at: number): boolean {
    if (!hasPayload(data, at)) return false
    const counter = counterOf(data, at)
    const last = stream.counter
    stream.counter = counter
    if (last === undefined || counter === (last + 1) % 16) return false
    if (counter === last) return true
    if (stream === this.lead) {
      this.hasLoss = true
      this.keyFrames?.drop()
    }
    return false
  }

  #use(program: Program): void {
    this.program = program
    this.streams.clear()
    for (const { pid, type, descriptors } of program.streams) this.streams.set(pid, newStream(pid, type, descriptors))
    const streams = [...this.streams.values()]
    const video = streams.find(({ type }) => videoCodecOf(type) !== undefined)
    this.lead = video ?? streams.at(0)
    this.audio = streams.find(({ type, descriptors }) => isAudio(type, descriptors))
    const codec = video && videoCodecOf(video.type)
    this.keyFrames = codec && new KeyFrameCollector(codec)
    this.format = codec && new FormatReader(codec)
  }
}

const newStream = (pid: number, type: number, descriptors: Buffer): PublishedStream => ({
  pid,
  type,
  descriptors,
  playerPid: pid,
  counter: undefined,
  time: undefined,
  at: 0,
  isDropped: false,
  unitTicks: 0,
  strayedAt: undefined,
  audio: undefined,
})

/** Reads the format of the audio until it is known, from the beginning of a unit. */
export function readAudio(stream: PublishedStream, data: Buffer, at: number, end: number): void {
  stream.audio ??= readAudioFormat(stream.type, stream.descriptors, data.subarray(at, end))
}
