/** Encodes an image as a picture that fits into a stream, by a process of `ffmpeg`. */
import { execFile } from 'node:child_process'
import { delimiter } from 'node:path'
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import { findProgram } from '../../platform/find-program.ts'
import { atLowPriority, type Command, endedWithRelay } from '../child-command.ts'

/** @returns undefined where `ffmpeg` is not installed. */
export function findSlateEncoder(searchPath: string): Command | undefined {
  const path = findProgram('ffmpeg', searchPath.split(delimiter))
  return path === undefined ? undefined : endedWithRelay(atLowPriority([path], searchPath), searchPath)
}

const pixelsMax = 4_096 * 2_304
const outputBytesMax = 4 * 1024 * 1024
const encodeMillisMax = 20_000
const errorTailCharacters = 300

/** Of the encoders, by codec: the profiles that have slates. */
const profiles: Readonly<Record<VideoFormat['codec'], readonly VideoFormat['profile'][]>> = {
  h264: ['baseline', 'main', 'high', 'high10'],
  hevc: ['main', 'main10'],
}

/** The pictures of a larger format, or with an odd side, as no encoder makes them for streams, have no slate. */
export const hasSlates = ({ codec, profile, width, height }: VideoFormat): boolean =>
  profiles[codec].includes(profile) && width * height <= pixelsMax && width % 2 === 0 && height % 2 === 0

/** Without the information about the encoder, which would be part of each repeated picture. */
const encoderArguments: Readonly<Record<VideoFormat['codec'], readonly string[]>> = {
  h264: ['libx264', '-x264-params', 'aud=1:repeat-headers=1', '-bsf:v', 'filter_units=remove_types=6', '-f', 'h264'],
  hevc: ['libx265', '-x265-params', 'aud=1:repeat-headers=1:info=0:pools=none:log-level=none', '-f', 'hevc'],
}

/** The image stands in the middle, as large as the picture allows. JPEG has full range and the matrix of BT.601. */
function listFilters({ profile, width, height }: VideoFormat): string {
  const pixels = profile === 'high10' || profile === 'main10' ? 'yuv420p10le' : 'yuv420p'
  const scaled = `scale=${width}:${height}:force_original_aspect_ratio=decrease`
  const coloured = 'in_range=full:out_range=tv:in_color_matrix=bt601:out_color_matrix=bt709'
  return `${scaled}:${coloured},pad=${width}:${height}:-1:-1,setsar=1,format=${pixels}`
}

const listArguments = (format: VideoFormat): string[] => [
  ...'-hide_banner -nostdin -loglevel error -protocol_whitelist pipe -threads 1'.split(' '),
  ...`-max_pixels ${pixelsMax} -f jpeg_pipe -framerate 30 -i pipe:0 -frames:v 1 -vf`.split(' '),
  listFilters(format),
  ...`-threads 1 -profile:v ${format.profile} -preset veryfast -crf 24 -bf 0 -color_range tv`.split(' '),
  ...'-colorspace bt709 -color_primaries bt709 -color_trc bt709 -c:v'.split(' '),
  ...encoderArguments[format.codec],
  'pipe:1',
]

export interface EncodeOptions {
  /** See {@link findSlateEncoder}. */
  readonly command: Command
  /** Ends the process. */
  readonly signal: AbortSignal
  readonly millisMax?: number
}

/**
 * @param image a JPEG.
 * @param format one that {@link hasSlates}.
 * @returns parameter sets and one key frame, as an elementary stream with start codes.
 */
export async function encodeSlate(
  image: Buffer,
  format: VideoFormat,
  { command: [path, ...prefix], signal, millisMax = encodeMillisMax }: EncodeOptions,
): Promise<Buffer> {
  const picture = await new Promise<Buffer>((done, fail) => {
    const limits = { timeout: millisMax, maxBuffer: outputBytesMax, killSignal: 'SIGKILL', signal, env: {} } as const
    const args = [...prefix, ...listArguments(format)]
    const child = execFile(path, args, { encoding: 'buffer', ...limits }, (error, stdout, stderr) => {
      if (error === null) done(stdout)
      else if (child.killed && typeof error.code !== 'string') fail(new Error(`ffmpeg took more than ${millisMax} ms`))
      // Its own message has the whole command.
      else fail(new Error(`ffmpeg failed: ${stderr.toString().slice(-errorTailCharacters).trim() || error.code}`))
    })
    // It may end before it has read everything.
    child.stdin?.on('error', () => {})
    child.stdin?.end(image)
  })
  if (picture.length === 0) throw new Error('ffmpeg made no picture')
  return picture
}
