/** The programs of this machine that publish and play streams over SRT, and their arguments. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { engineInstallCommand } from '../domain/relay/engines.ts'
import { findProgram } from '../platform/find-program.ts'

export interface MediaPrograms {
  readonly ffmpeg: { readonly path: string; readonly hasSrt: boolean } | undefined
  /** The path of `srt-live-transmit`. */
  readonly liveTransmit: string | undefined
}

/** A program and its arguments. */
export type Command = readonly [path: string, ...args: string[]]

/** @param folders those of `PATH`. */
export async function findMediaPrograms(folders: readonly string[]): Promise<MediaPrograms> {
  const ffmpeg = findProgram('ffmpeg', folders)
  return {
    ffmpeg: ffmpeg === undefined ? undefined : { path: ffmpeg, hasSrt: await hasSrt(ffmpeg) },
    liveTransmit: findProgram('srt-live-transmit', folders),
  }
}

/** Some builds of ffmpeg lack SRT, for example that of Homebrew. */
async function hasSrt(ffmpeg: string): Promise<boolean> {
  try {
    const { stdout } = await promisify(execFile)(ffmpeg, ['-hide_banner', '-protocols'])
    return /^\s*srt$/m.test(stdout)
  } catch {
    return false
  }
}

/** Whether a stream can be published and played. */
export const canStream = ({ ffmpeg, liveTransmit }: MediaPrograms): boolean =>
  liveTransmit !== undefined || ffmpeg?.hasSrt === true

export const mediaInstallCommand = (platform: NodeJS.Platform): string => `${engineInstallCommand(platform)} ffmpeg`

/** Seven packets of MPEG-TS, the usual payload of an SRT packet. */
export const payloadBytes = 1316

/** Arguments of ffmpeg: a moving picture with a tone. Uses encoders that every ffmpeg has. */
export const patternInputs = '-re -f lavfi -i testsrc2=size=1280x720:rate=30 -re -f lavfi -i sine=frequency=440'

const quiet = '-nostdin -hide_banner -loglevel error'

/** @param words arguments without spaces inside. */
const command = (path: string, words: string, ...more: string[]): Command => [path, ...words.split(' '), ...more]

/** A test pattern at about 2 Mbit/s, for a limited time. */
export const generatePattern = (ffmpeg: string, target: string, secondsMax: number): Command => {
  const output = `-t ${secondsMax} -b:v 2M -maxrate 2M -bufsize 1M -f mpegts`
  return command(ffmpeg, `${quiet} ${patternInputs} ${output}`, target)
}

const transmit = (liveTransmit: string, from: string, to: string): Command =>
  command(liveTransmit, `-q -a:no -chunk:${payloadBytes}`, from, to)

/** Sends standard input to an address. */
export const sendInput = (liveTransmit: string, url: string): Command => transmit(liveTransmit, 'file://con', url)

/** Writes the stream of an address to standard output. */
export function receiveOutput({ ffmpeg, liveTransmit }: MediaPrograms, url: string): Command {
  if (liveTransmit !== undefined) return transmit(liveTransmit, url, 'file://con')
  if (!ffmpeg?.hasSrt) throw new Error('no program can play a stream over SRT')
  return [...command(ffmpeg.path, `${quiet} -i`, url), ...'-map 0 -c copy -f mpegts pipe:1'.split(' ')]
}

/** Decodes the video of standard input, and writes a line per frame. */
export const decodeInput = (ffmpeg: string): Command => {
  const input = '-fflags nobuffer -probesize 300000 -analyzeduration 500000 -i pipe:0'
  return command(ffmpeg, `-hide_banner -loglevel quiet ${input} -map 0:v:0 -f framecrc -flush_packets 1 pipe:1`)
}

/**
 * Adds the payload size of SRT to an address for ffmpeg, which otherwise sends other block sizes than players expect.
 */
export const ffmpegTarget = (url: string): string => `${url}&pkt_size=${payloadBytes}`
