/** The stream types of a program map that the stage understands. */
import type { VideoFormat } from '../../domain/relay/stream-format.ts'

const videoCodecs: ReadonlyMap<number, VideoFormat['codec']> = new Map([
  [0x1b, 'h264'],
  [0x24, 'hevc'],
])

export const videoCodecOf = (type: number): VideoFormat['codec'] | undefined => videoCodecs.get(type)

const audioTypes: ReadonlySet<number> = new Set([0x03, 0x04, 0x0f, 0x11, 0x81, 0x87])
const privateData = 0x06
const opusRegistration = Buffer.from('Opus')

export const isAudio = (type: number, descriptors: Buffer): boolean =>
  audioTypes.has(type) || (type === privateData && descriptors.includes(opusRegistration))
