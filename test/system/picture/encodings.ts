/**
 * Streams that were encoded before, so that publishing them costs little. Each picture and each sound is unlike any
 * other.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Encoding {
  readonly video: 'h264' | 'hevc'
  readonly audio: 'aac' | 'opus'
  /** As `640x360`. */
  readonly size: string
  readonly frameRate: number
  readonly bFrames: number
  readonly profile?: 'baseline' | 'main' | 'high'
  readonly kbps: number
  readonly seconds: number
}

const run = promisify(execFile)
const folder = join(tmpdir(), 'relay-control-plane-encodings')
const pending = new Map<string, Promise<string>>()
let latest: Promise<unknown> = Promise.resolve()

/** @returns the path of the MPEG-TS, which stays for later runs. */
export function encode(encoding: Encoding): Promise<string> {
  const { video, audio, size, frameRate, bFrames, profile = 'main', kbps, seconds } = encoding
  const name = [video, audio, size, frameRate, bFrames, profile, kbps, seconds].join('-')
  const path = join(folder, `${name}.ts`)
  const running = pending.get(name) ?? latest.then(() => makeOnce(path, encoding))
  pending.set(name, running)
  // Streams of a play are live meanwhile, so there is one encoder at a time.
  latest = running.catch(() => {})
  return running
}

async function makeOnce(path: string, encoding: Encoding): Promise<string> {
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  const partial = `${path}.${process.pid}`
  await run('ffmpeg', [...argumentsOf(encoding), partial])
  await rename(partial, path)
  return path
}

function argumentsOf({ video, audio, size, frameRate, bFrames, profile = 'main', kbps, seconds }: Encoding): string[] {
  const pictures = ['-f', 'lavfi', '-i', `testsrc2=s=${size}:r=${frameRate}`]
  const sounds = ['-f', 'lavfi', '-i', `anoisesrc=a=0.05:r=48000:seed=${frameRate + bFrames}`]
  const codec =
    video === 'h264'
      ? ['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', profile, '-bf', String(bFrames), '-sc_threshold', '0']
      : ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', hevcParameters(bFrames)]
  const rate = ['-g', String(frameRate), '-b:v', `${kbps}k`, '-pix_fmt', 'yuv420p']
  const sound = audio === 'aac' ? ['-c:a', 'aac', '-b:a', '96k'] : ['-c:a', 'libopus', '-b:a', '64k']
  const output = ['-ac', '2', '-t', String(seconds), '-f', 'mpegts']
  return ['-nostdin', '-y', '-v', 'error', ...pictures, ...sounds, ...codec, ...rate, ...sound, ...output]
}

/** An image as the control plane stores it. */
export async function makeSlate(): Promise<Buffer> {
  const picture = ['-f', 'lavfi', '-i', 'smptebars=s=1280x720', '-frames:v', '1']
  const output = ['-pix_fmt', 'yuvj420p', '-f', 'mjpeg', 'pipe:1']
  const { stdout } = await run('ffmpeg', ['-nostdin', '-v', 'error', ...picture, ...output], { encoding: 'buffer' })
  return stdout
}

const hevcParameters = (bFrames: number) => `bframes=${bFrames}:scenecut=0:open-gop=0:log-level=none`
