/** Frames of silence, and how program maps name the streams that a relay makes itself. */
import type { AudioFormat } from '../../domain/relay/stream-format.ts'
import { BitWriter } from './bits.ts'

/** Of ISO/IEC 14496-3, table 1.18; the index stands in the frames. */
export const sampleRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
] as const

const lowComplexity = 2

/** The elements of a frame by the number of channels: of a single one, of a pair, and of low frequencies. */
const elementsOf: Readonly<Record<number, readonly ('single' | 'pair' | 'low')[]>> = {
  1: ['single'],
  2: ['pair'],
  3: ['single', 'pair'],
  4: ['single', 'pair', 'single'],
  5: ['single', 'pair', 'pair'],
  6: ['single', 'pair', 'pair', 'low'],
  8: ['single', 'pair', 'pair', 'pair', 'low'],
}

/** @returns the payload of a PES packet; undefined for a format that has no silence here. */
export function silentFrame(format: AudioFormat): Buffer | undefined {
  if (format.codec === 'opus') return silentOpus(format.channels)
  const rateIndex = (sampleRates as readonly number[]).indexOf(format.sampleRate)
  const block = rateIndex < 0 ? undefined : silentBlock(format.channels)
  if (block === undefined) return undefined
  const configuration = format.channels === 8 ? 7 : format.channels
  return format.codec === 'aac_adts'
    ? adtsFrame(block, rateIndex, configuration)
    : latmFrame(block, rateIndex, configuration)
}

/** A raw data block of AAC without a spectrum (ISO/IEC 14496-3, 4.4.2). */
function silentBlock(channels: number): Buffer | undefined {
  const elements = elementsOf[channels]
  if (elements === undefined) return undefined
  const bits = new BitWriter()
  const counts = { single: 0, pair: 0, low: 0 }
  const ids = { single: 0, pair: 1, low: 3 }
  // Reserved bit, long window of the first shape, no scale factor band, no prediction.
  const writeInfo = () => bits.write(0, 1).write(0, 2).write(0, 1).write(0, 6).write(0, 1)
  const gain = 140
  // Neither pulses, nor noise shaping, nor gain control.
  const writeTools = () => bits.write(0, 3)
  for (const element of elements) {
    bits.write(ids[element], 3).write(counts[element], 4)
    counts[element] += 1
    if (element === 'pair') {
      bits.write(1, 1)
      writeInfo()
      bits.write(0, 2)
      for (const _channel of [0, 1]) {
        bits.write(gain, 8)
        writeTools()
      }
    } else {
      bits.write(gain, 8)
      writeInfo()
      writeTools()
    }
  }
  return bits.write(7, 3).toBuffer()
}

const adtsHeaderBytes = 7

function adtsFrame(block: Buffer, rateIndex: number, configuration: number): Buffer {
  const header = new BitWriter()
    .write(0xfff, 12)
    // MPEG-4, no layer, no checksum.
    .write(0b0001, 4)
    .write(lowComplexity - 1, 2)
    .write(rateIndex, 4)
    .write(0, 1)
    .write(configuration, 3)
    .write(0, 4)
    .write(block.length + adtsHeaderBytes, 13)
    .write(0x7ff, 11)
    .write(0, 2)
  return Buffer.concat([header.toBuffer(), block])
}

/** With the configuration in each frame, as encoders of MPEG-TS send it. */
function latmFrame(block: Buffer, rateIndex: number, configuration: number): Buffer {
  const mux = new BitWriter()
    // The configuration follows: version 0, same framing, one frame, one program, one layer.
    .write(0, 1)
    .write(0, 1)
    .write(1, 1)
    .write(0, 6 + 4 + 3)
    .write(lowComplexity, 5)
    .write(rateIndex, 4)
    .write(configuration, 4)
    .write(0, 3)
    // Frames of variable length, a decoder buffer of unknown level, no other data, no checksum.
    .write(0, 3)
    .write(0xff, 8)
    .write(0, 2)
  for (let rest = block.length; ; rest -= 255) {
    mux.write(Math.min(rest, 255), 8)
    if (rest < 255) break
  }
  for (const byte of block) mux.write(byte, 8)
  const element = mux.toBuffer()
  const header = new BitWriter().write(0x2b7, 11).write(element.length, 13).toBuffer()
  return Buffer.concat([header, element])
}

/** 20 ms at the full band. */
function silentOpus(channels: number): Buffer | undefined {
  if (channels !== 1 && channels !== 2) return undefined
  const packet = Buffer.from([channels === 2 ? 0xfc : 0xf8, 0xff, 0xfe])
  return Buffer.concat([Buffer.from([0x7f, 0xe0, packet.length]), packet])
}

interface StreamType {
  readonly type: number
  readonly descriptors: Buffer
}

const registration = (name: string) => Buffer.concat([Buffer.from([0x05, name.length]), Buffer.from(name)])

export function streamTypeOf({ codec, channels }: AudioFormat): StreamType {
  if (codec === 'aac_adts') return { type: 0x0f, descriptors: Buffer.alloc(0) }
  if (codec === 'aac_latm') return { type: 0x11, descriptors: Buffer.alloc(0) }
  // An extension descriptor with the number of channels.
  return { type: 0x06, descriptors: Buffer.concat([registration('Opus'), Buffer.from([0x7f, 2, 0x80, channels])]) }
}

export const videoTypeOf = (codec: 'h264' | 'hevc'): StreamType =>
  codec === 'h264' ? { type: 0x1b, descriptors: Buffer.alloc(0) } : { type: 0x24, descriptors: registration('HEVC') }
