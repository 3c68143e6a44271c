/**
 * The format of a stream, as relays report it and as the relay of a replacement gets it, so that it can begin with a
 * slate in the format that the players had before.
 */

export const videoCodecs = ['h264', 'hevc'] as const
export const videoProfiles = ['baseline', 'main', 'high', 'main10', 'high10', 'other'] as const
export const audioCodecs = ['aac_adts', 'aac_latm', 'opus'] as const

export interface VideoFormat {
  readonly codec: (typeof videoCodecs)[number]
  /** `other` has no slate. */
  readonly profile: (typeof videoProfiles)[number]
  /** In pixels. */
  readonly width: number
  readonly height: number
  /** Pictures a second. */
  readonly frameRate: number
}

export interface AudioFormat {
  readonly codec: (typeof audioCodecs)[number]
  /** In hertz. Of AAC with SBR that of its core. */
  readonly sampleRate: number
  readonly channels: number
}

export interface StreamFormat {
  readonly video: VideoFormat
  /** Null for a stream without audio, or with one that relays have no silence for. */
  readonly audio: AudioFormat | null
}

/** Of a picture that is encoded as a slate. */
export const pictureSideMax = 8_192
export const frameRateMax = 240
export const sampleRateMax = 96_000
export const channelsMax = 8

/** As relays and the API exchange it. */
export interface ReportedStreamFormat {
  readonly video: {
    readonly codec: VideoFormat['codec']
    readonly profile: VideoFormat['profile']
    readonly width: number
    readonly height: number
    readonly frame_rate: number
  }
  readonly audio: {
    readonly codec: AudioFormat['codec']
    readonly sample_rate: number
    readonly channels: number
  } | null
}

export const showStreamFormat = ({ video, audio }: StreamFormat): ReportedStreamFormat => ({
  video: {
    codec: video.codec,
    profile: video.profile,
    width: video.width,
    height: video.height,
    frame_rate: video.frameRate,
  },
  audio: audio && { codec: audio.codec, sample_rate: audio.sampleRate, channels: audio.channels },
})

/** @returns undefined for anything that {@link showStreamFormat} does not return. */
export function readStreamFormat(value: unknown): StreamFormat | undefined {
  const { video, audio } = (value ?? {}) as { video?: Record<string, unknown>; audio?: unknown }
  const readVideo = videoOf(video ?? {})
  const readAudio = audio === null || audio === undefined ? null : audioOf(audio as Record<string, unknown>)
  return readVideo === undefined || readAudio === undefined ? undefined : { video: readVideo, audio: readAudio }
}

function videoOf({ codec, profile, width, height, frame_rate }: Record<string, unknown>): VideoFormat | undefined {
  const knownCodec = videoCodecs.find((each) => each === codec)
  const knownProfile = videoProfiles.find((each) => each === profile)
  if (knownCodec === undefined || knownProfile === undefined) return undefined
  if (!isSize(width, pictureSideMax) || !isSize(height, pictureSideMax)) return undefined
  if (typeof frame_rate !== 'number' || !(frame_rate > 0 && frame_rate <= frameRateMax)) return undefined
  return { codec: knownCodec, profile: knownProfile, width, height, frameRate: frame_rate }
}

function audioOf({ codec, sample_rate, channels }: Record<string, unknown>): AudioFormat | undefined {
  const knownCodec = audioCodecs.find((each) => each === codec)
  if (knownCodec === undefined || !isSize(sample_rate, sampleRateMax) || !isSize(channels, channelsMax))
    return undefined
  return { codec: knownCodec, sampleRate: sample_rate, channels }
}

const isSize = (value: unknown, max: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= max
