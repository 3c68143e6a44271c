/** The process that encodes a slate, with a script in the place of `ffmpeg`. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { VideoFormat } from '../../../domain/relay/stream-format.ts'
import { encodeSlate, findSlateEncoder, hasSlates } from '../../../relay-node/slates/slate-encoder.ts'
import { eventually, givenFolder } from '../running.ts'
import { givenFfmpeg } from './ffmpeg-stand-in.ts'

const image = Buffer.from('the bytes of a JPEG')
const format: VideoFormat = { codec: 'h264', profile: 'high', width: 1280, height: 720, frameRate: 30 }

function encode(
  { searchPath }: { readonly searchPath: string },
  more: { readonly millisMax?: number; readonly signal?: AbortSignal } = {},
) {
  const command = findSlateEncoder(searchPath)
  if (command === undefined) throw new Error('the script was not found')
  return encodeSlate(image, format, { command, signal: new AbortController().signal, ...more })
}

const isRunning = (pid: number) => existsSync(`/proc/${pid}`) || canSignal(pid)

function canSignal(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('the image goes in, and what comes out is the picture', async () => {
  const ffmpeg = givenFfmpeg('cat; printf " as a picture"')
  expect((await encode(ffmpeg)).toString()).toBe('the bytes of a JPEG as a picture')
  expect(ffmpeg.starts()).toEqual([expect.stringMatching(/scale=1280:720.*-profile:v high .*libx264.*pipe:1$/)])
})

test('where ffmpeg is not installed there is no encoder', () => {
  expect(findSlateEncoder(givenFolder())).toBeUndefined()
})

test.each([
  ['a failure', 'echo "no such encoder" >&2; exit 1', 'ffmpeg failed: no such encoder'],
  ['a failure without a word', 'exit 3', 'ffmpeg failed: 3'],
  ['nothing', 'cat > /dev/null', 'ffmpeg made no picture'],
  ['more than 4 MB', 'head -c 4194305 /dev/zero', 'ffmpeg failed: ERR_CHILD_PROCESS_STDIO_MAXBUFFER'],
])('%s is an error', async (_, act, message) => {
  await expect(encode(givenFfmpeg(act))).rejects.toThrow(message)
})

test('a process that hangs is ended after the limit', async () => {
  const ffmpeg = givenFfmpeg('echo $$ > $folder/pid; exec sleep 600')
  await expect(encode(ffmpeg, { millisMax: 1_500 })).rejects.toThrow('ffmpeg took more than 1500 ms')
  const pid = Number(readFileSync(join(ffmpeg.folder, 'pid'), 'utf8'))
  await eventually(
    () => isRunning(pid),
    (running) => !running,
  )
})

test('a process whose picture is not wanted any more is ended', async () => {
  const ffmpeg = givenFfmpeg('echo $$ > $folder/pid; exec sleep 600')
  const unwanted = new AbortController()
  const encoding = expect(encode(ffmpeg, { signal: unwanted.signal })).rejects.toThrow()
  await eventually(() => existsSync(join(ffmpeg.folder, 'pid')), Boolean)
  const pid = await eventually(() => Number(readFileSync(join(ffmpeg.folder, 'pid'), 'utf8')), Boolean)
  unwanted.abort()
  await encoding
  await eventually(
    () => isRunning(pid),
    (running) => !running,
  )
})

test.each<[Partial<VideoFormat>, boolean]>([
  [{}, true],
  [{ profile: 'baseline' }, true],
  [{ profile: 'high10' }, true],
  [{ codec: 'hevc', profile: 'main10' }, true],
  [{ codec: 'hevc', profile: 'high' }, false],
  [{ profile: 'other' }, false],
  [{ width: 4096, height: 2304 }, true],
  [{ width: 2160, height: 3840 }, true],
  [{ width: 8192, height: 8192 }, false],
  [{ width: 1279 }, false],
  [{ height: 719 }, false],
])('of the format with %o it is known whether it has slates', (change, expected) => {
  expect(hasSlates({ ...format, ...change })).toBe(expected)
})
