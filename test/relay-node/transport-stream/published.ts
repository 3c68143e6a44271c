/** Streams of a publisher, packet by packet, and what players receive of them. */
import type { AudioFormat, VideoFormat } from '../../../domain/relay/stream-format.ts'
import {
  counterOf,
  hasPayload,
  nullPid,
  packetBytes,
  packetize,
  payloadAt,
  pidOf,
  readPcr,
  setCounter,
  startsUnit,
} from '../../../relay-node/transport-stream/packet.ts'
import { buildPes, readPesHeader } from '../../../relay-node/transport-stream/pes.ts'
import { type Program, writePat, writePmt } from '../../../relay-node/transport-stream/program-tables.ts'
import { silentFrame, streamTypeOf, videoTypeOf } from '../../../relay-node/transport-stream/silence.ts'

export const audioFormat: AudioFormat = { codec: 'aac_adts', sampleRate: 48_000, channels: 2 }
/** 25 pictures a second. */
export const frameTicks = 3_600
export const frameMillis = 40
const audioTicks = 1_920
export const pids = { pmt: 0x1000, video: 0x100, audio: 0x101 }

const startCode = Buffer.from([0, 0, 0, 1])
/** Of x264: baseline, 640×360. */
const sequence = Buffer.from('6742c01ed900a02ff97011000003000100000300320f162e48', 'hex')
const picture = Buffer.from('68cb83cb20', 'hex')
/** The first slice of a key frame: of the parameter set 0, and the number 0. */
const sliceHeader = Buffer.from([0xb8, 0x40, 0x80])
/** @param text by which the unit is recognised. */
export const keyUnit = (text: string): Buffer =>
  Buffer.concat([
    startCode,
    sequence,
    startCode,
    picture,
    startCode,
    Buffer.from([0x65]),
    sliceHeader,
    Buffer.from(`<${text}>`),
  ])
const deltaUnit = (text: string): Buffer => Buffer.concat([startCode, Buffer.from([0x41]), Buffer.from(`<${text}>`)])

export interface PublisherOptions {
  /** Of the first picture, in ticks. */
  readonly startsAt?: number
  /** Pictures from one key frame to the next. */
  readonly keyEvery?: number
  /** Which picture is the first one; 0 is a key frame. */
  readonly first?: number
  readonly name?: string
  readonly codec?: VideoFormat['codec']
}

/** An encoder: each call returns the packets of one picture and of the sound that belongs to it. */
export function createPublisher({ startsAt = 90_000, keyEvery = 25, first = 0, name = 'a' }: PublisherOptions = {}) {
  const counters = new Map<number, number>()
  const program: Program = {
    transportStreamId: 7,
    number: 1,
    pmtPid: pids.pmt,
    pcrPid: pids.video,
    descriptors: Buffer.alloc(0),
    streams: [
      { pid: pids.video, ...videoTypeOf('h264') },
      { pid: pids.audio, ...streamTypeOf(audioFormat) },
    ],
  }
  const count = (packets: Buffer) => {
    for (let at = 0; at < packets.length; at += packetBytes) {
      const pid = pidOf(packets, at)
      const last = counters.get(pid) ?? 15
      const next = hasPayload(packets, at) ? (last + 1) % 16 : last
      setCounter(packets, at, next)
      counters.set(pid, next)
    }
    return packets
  }
  let number = first
  let audioAt = startsAt
  return {
    /** Moves the times of all that follows. */
    jump(ticks: number): void {
      startsAt += ticks
      audioAt += ticks
    },
    next(): Buffer {
      const isKey = number % keyEvery === 0
      const dts = startsAt + (number - first) * frameTicks
      const text = `${name}${number}`
      number += 1
      const unit = isKey ? keyUnit(text) : deltaUnit(text)
      const tables = isKey ? [packetize(0, writePat(program, 0)), packetize(pids.pmt, writePmt(program, 0))] : []
      const video = packetize(pids.video, buildPes({ streamId: 0xe0, pts: dts + frameTicks, dts, payload: unit }), {
        isRandomAccess: isKey,
        pcr: (dts - 9_000) * 300,
      })
      const audio: Buffer[] = []
      for (; audioAt < dts + frameTicks; audioAt += audioTicks) {
        const payload = silentFrame(audioFormat) ?? Buffer.alloc(0)
        audio.push(packetize(pids.audio, buildPes({ streamId: 0xc0, pts: audioAt, payload })))
      }
      return count(Buffer.concat([...tables, video, ...audio]))
    },
  }
}

interface Unit {
  readonly dts: number
  readonly text: string
}

export interface Received {
  /** What is wrong with the stream. */
  readonly errors: string[]
  readonly pictures: Unit[]
  readonly audio: number[]
  readonly packets: number
}

/** Reads what players receive, as one of them would. */
export function readStream(data: Buffer): Received {
  const errors: string[] = []
  const counters = new Map<number, number>()
  const times = new Map<number, number>()
  const pictures: Unit[] = []
  const audio: number[] = []
  let reference = Number.NEGATIVE_INFINITY
  for (let at = 0; at < data.length; at += packetBytes) {
    const pid = pidOf(data, at)
    if (pid === nullPid) continue
    const last = counters.get(pid)
    const expected = last === undefined ? counterOf(data, at) : hasPayload(data, at) ? (last + 1) % 16 : last
    if (counterOf(data, at) !== expected) errors.push(`counter of ${pid}`)
    counters.set(pid, expected)
    const pcr = readPcr(data, at)
    if (pcr !== undefined) {
      if (pcr / 300 <= reference) errors.push(`clock ${pcr / 300} after ${reference}`)
      reference = pcr / 300
    }
    const from = payloadAt(data, at)
    const header = startsUnit(data, at) ? readPesHeader(data, from, at + packetBytes) : undefined
    const time = header?.dts ?? header?.pts
    if (header === undefined || time === undefined) continue
    if (time <= (times.get(pid) ?? Number.NEGATIVE_INFINITY)) errors.push(`time of ${pid}: ${time}`)
    if (time < reference) errors.push(`time of ${pid}: ${time} is behind the clock`)
    times.set(pid, time)
    if (header.streamId !== 0xe0) audio.push(time)
    else {
      const payload = data.subarray(header.payloadAt, at + packetBytes).toString('latin1')
      const text = /<(?<text>\w+)>/.exec(payload)?.groups?.text ?? ''
      pictures.push({ dts: time, text })
    }
  }
  return { errors, pictures, audio, packets: data.length / packetBytes }
}
