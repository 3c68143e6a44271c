/** Publishes a test pattern over SRT, and plays a stream, with the programs of this machine. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Command,
  decodeInput,
  ffmpegTarget,
  generatePattern,
  type MediaPrograms,
  payloadBytes,
  receiveOutput,
  sendInput,
} from './media-programs.ts'

const errorTailBytes = 500
const paddingBitsPerSecond = 2_000_000
const paddingMillis = 20

interface StreamOptions {
  readonly programs: MediaPrograms
  readonly url: string
  /** Ends all processes. */
  readonly signal: AbortSignal
}

/**
 * @param secondsMax it ends by itself after this time, also when this process has been killed.
 * @returns what it publishes, for the user, and a promise of the reason when it has ended.
 */
export function startPublisher({ programs, url, signal }: StreamOptions, secondsMax: number) {
  const { ffmpeg, liveTransmit } = programs
  if (ffmpeg?.hasSrt) {
    const { ended } = run(generatePattern(ffmpeg.path, ffmpegTarget(url), secondsMax), signal)
    return { description: 'ffmpeg publishes a test pattern', ended }
  }
  if (liveTransmit === undefined) throw new Error('no program can publish a stream over SRT')
  const sender = run(sendInput(liveTransmit, url), signal)
  const { ended, child } = sender
  if (ffmpeg === undefined) {
    void writePadding(child.stdin, signal)
    return { description: 'srt-live-transmit publishes a stream of empty packets', ended }
  }
  const pattern = run(generatePattern(ffmpeg.path, 'pipe:1', secondsMax), signal)
  pattern.child.stdout.pipe(child.stdin)
  const description = 'ffmpeg and srt-live-transmit publish a test pattern'
  return { description, ended: Promise.race([ended, pattern.ended]) }
}

/** What a player has received so far. Times are those of `performance.now()`. */
export interface Player {
  readonly bytes: number
  readonly firstByteAt: number | undefined
  /** Decoded frames; undefined when no program can decode them. */
  readonly frames: number | undefined
  readonly firstFrameAt: number | undefined
  readonly ended: Promise<string>
}

export function startPlayer({ programs, url, signal }: StreamOptions): Player {
  const { child, ended } = run(receiveOutput(programs, url), signal)
  const player = {
    bytes: 0,
    firstByteAt: undefined as number | undefined,
    frames: programs.ffmpeg === undefined ? undefined : 0,
    firstFrameAt: undefined as number | undefined,
    ended,
  }
  child.stdout.on('data', (chunk: Buffer) => {
    player.firstByteAt ??= performance.now()
    player.bytes += chunk.length
  })
  if (programs.ffmpeg) {
    const decoder = run(decodeInput(programs.ffmpeg.path), signal)
    child.stdout.pipe(decoder.child.stdin)
    decoder.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      // Lines that begin with # describe the stream.
      const frames = text.split('\n').filter((line) => /^\d/.test(line)).length
      if (frames > 0) player.firstFrameAt ??= performance.now()
      player.frames = (player.frames ?? 0) + frames
    })
  }
  return player
}

function run([path, ...args]: Command, signal: AbortSignal) {
  const child = spawn(path, args, { stdio: 'pipe', signal, killSignal: 'SIGKILL' })
  // A process that has ended reads no more input, and an aborted one reports the abort.
  child.stdin.on('error', () => {})
  child.on('error', () => {})
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-errorTailBytes)
  })
  const ended = once(child, 'close').then(
    ([code, endSignal]) => `${path} ended with ${endSignal ?? `code ${code}`}${errors && `: ${errors.trim()}`}`,
    (error: Error) => `${path} could not be run: ${error.message}`,
  )
  return { child, ended }
}

/** Writes null packets of MPEG-TS, which players ignore. */
async function writePadding(output: Writable, signal: AbortSignal): Promise<void> {
  const packet = Buffer.alloc(188, 0xff)
  packet.set([0x47, 0x1f, 0xff, 0x10])
  const payload = Buffer.concat(Array.from({ length: payloadBytes / packet.length }, () => packet))
  const since = performance.now()
  let sent = 0
  while (!signal.aborted && output.writable) {
    const due = ((performance.now() - since) / 1000) * (paddingBitsPerSecond / 8)
    for (; sent < due; sent += payload.length) output.write(payload)
    await sleep(paddingMillis)
  }
}
