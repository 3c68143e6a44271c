/** The format of a stream, in reports and in what relays get. */
import { z } from 'zod'
import {
  audioCodecs,
  channelsMax,
  frameRateMax,
  pictureSideMax,
  sampleRateMax,
  videoCodecs,
  videoProfiles,
} from '../../../domain/relay/stream-format.ts'

const upTo = (max: number) => z.int().min(1).max(max)

export const StreamFormat = z.object({
  video: z.object({
    codec: z.enum(videoCodecs),
    profile: z.enum(videoProfiles).describe('`other` has no slate.'),
    width: upTo(pictureSideMax).describe('In pixels.'),
    height: upTo(pictureSideMax),
    frame_rate: z.number().gt(0).max(frameRateMax).describe('Pictures a second.'),
  }),
  audio: z
    .object({
      codec: z.enum(audioCodecs),
      sample_rate: upTo(sampleRateMax).describe('In hertz. Of AAC with SBR that of its core.'),
      channels: upTo(channelsMax),
    })
    .nullable()
    .describe('Null for a stream without audio, or with an unknown one.'),
})
