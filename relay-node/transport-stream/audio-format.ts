/** Reads the headers of audio frames. */
import type { AudioFormat } from '../../domain/relay/stream-format.ts'
import { BitReader } from './bits.ts'
import { sampleRates } from './silence.ts'
import { isAudio } from './stream-kinds.ts'
import { ticksPerSecond } from './stream-times.ts'

/** The format of audio, with the length of a frame in ticks. */
export interface ReadAudio extends AudioFormat {
  readonly frameTicks: number
}

const samplesOfAac = 1_024
const opusMillis = 20

export const frameTicksOf = ({ codec, sampleRate }: AudioFormat): number =>
  codec === 'opus' ? (opusMillis * ticksPerSecond) / 1000 : (samplesOfAac * ticksPerSecond) / sampleRate

const types = { adts: 0x0f, latm: 0x11, private: 0x06 }

/** @param payload the beginning of a PES packet. @returns undefined for a format that is not known. */
export function readAudioFormat(type: number, descriptors: Buffer, payload: Buffer): ReadAudio | undefined {
  const format = formatOf(type, descriptors, payload)
  return format && { ...format, frameTicks: frameTicksOf(format) }
}

function formatOf(type: number, descriptors: Buffer, payload: Buffer): AudioFormat | undefined {
  if (type === types.adts) return readAdts(payload)
  if (type === types.private) return isAudio(type, descriptors) ? readOpus(descriptors) : undefined
  if (type !== types.latm) return undefined
  try {
    return readLatm(payload)
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

const channelsOf = (configuration: number): number => (configuration === 7 ? 8 : configuration)

const aac = (codec: 'aac_adts' | 'aac_latm', rateIndex: number, configuration: number): AudioFormat | undefined => {
  const sampleRate = sampleRates[rateIndex]
  // Configuration 0 is described in the frames.
  if (sampleRate === undefined || configuration < 1 || configuration > 7) return undefined
  return { codec, sampleRate, channels: channelsOf(configuration) }
}

function readAdts(payload: Buffer): AudioFormat | undefined {
  if (payload.length < 4 || payload[0] !== 0xff || ((payload[1] ?? 0) & 0xf6) !== 0xf0) return undefined
  const [, , third = 0, fourth = 0] = payload
  return aac('aac_adts', (third >> 2) & 15, ((third & 1) << 2) | (fourth >> 6))
}

/** Of the frames that ISO/IEC 14496-3 calls LOAS, with the usual configuration of one layer. */
function readLatm(payload: Buffer): AudioFormat | undefined {
  const bits = new BitReader(payload.subarray(0, 32))
  if (bits.read(11) !== 0x2b7) return undefined
  bits.skip(13)
  const usesFormerConfiguration = bits.flag()
  const version = bits.read(1)
  if (usesFormerConfiguration || version !== 0) return undefined
  bits.skip(1 + 6 + 4 + 3)
  const objectType = bits.read(5)
  const rateIndex = bits.read(4)
  const configuration = bits.read(4)
  return objectType === 31 ? undefined : aac('aac_latm', rateIndex, configuration)
}

const extensionTag = 0x7f
const opusExtension = 0x80

/** The number of channels stands in an extension descriptor of the program map. */
function readOpus(descriptors: Buffer): AudioFormat | undefined {
  for (let at = 0; at + 2 <= descriptors.length; at += 2 + (descriptors[at + 1] ?? 0)) {
    if (descriptors[at] !== extensionTag || descriptors[at + 2] !== opusExtension) continue
    const channels = descriptors[at + 3] ?? 0
    return channels >= 1 && channels <= 8 ? { codec: 'opus', sampleRate: 48_000, channels } : undefined
  }
  return undefined
}
