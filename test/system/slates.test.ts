/** The slates of a relay, as the real `ffmpeg` makes them. `ffprobe` and the decoder of `ffmpeg` are the judges. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import { encodeSlate, findSlateEncoder } from '../../relay-node/slates/slate-encoder.ts'

const signal = new AbortController().signal
const command = findSlateEncoder(process.env.PATH ?? '')

/** @param colour one of ffmpeg's names. */
async function createImage(size: string, colour: string): Promise<Buffer> {
  const args = `-v error -f lavfi -i color=${colour}:size=${size} -frames:v 1 -q:v 2 -f mjpeg pipe:1`.split(' ')
  return (await promisify(execFile)('ffmpeg', args, { encoding: 'buffer' })).stdout
}

const encode = async (image: Buffer, format: VideoFormat): Promise<Buffer> => {
  if (command === undefined) throw new Error('this test requires ffmpeg on the PATH')
  return encodeSlate(image, format, { command, signal })
}

/** What a program writes that reads the picture from its standard input. */
async function pass(picture: Buffer, program: string, args: string): Promise<Buffer> {
  const running = promisify(execFile)(program, args.split(' '), { encoding: 'buffer' })
  running.child.stdin?.end(picture)
  return (await running).stdout
}

/** The types of the units of an elementary stream. */
function listUnits(picture: Buffer, codec: VideoFormat['codec']): number[] {
  const units: number[] = []
  for (let at = picture.indexOf('000001', 0, 'hex'); at >= 0; at = picture.indexOf('000001', at + 3, 'hex')) {
    const first = picture[at + 3] ?? 0
    units.push(codec === 'h264' ? first & 0x1f : (first >> 1) & 0x3f)
  }
  return units
}

const formatOf = (codec: VideoFormat['codec'], profile: VideoFormat['profile'], width: number, height: number) => ({
  codec,
  profile,
  width,
  height,
  frameRate: 30,
})

const pictureUnits = { h264: [9, 7, 8, 5], hevc: [35, 32, 33, 34, 20] }

test.each<[VideoFormat, string, string]>([
  [formatOf('h264', 'baseline', 640, 360), 'Constrained Baseline', 'yuv420p'],
  [formatOf('h264', 'main', 1280, 720), 'Main', 'yuv420p'],
  [formatOf('h264', 'high', 1920, 1080), 'High', 'yuv420p'],
  [formatOf('h264', 'high10', 1280, 720), 'High 10', 'yuv420p10le'],
  [formatOf('h264', 'high', 1080, 1920), 'High', 'yuv420p'],
  [formatOf('hevc', 'main', 1920, 1080), 'Main', 'yuv420p'],
  [formatOf('hevc', 'main10', 1280, 720), 'Main 10', 'yuv420p10le'],
  [formatOf('hevc', 'main10', 4096, 2304), 'Main 10', 'yuv420p10le'],
])('in the format %o a slate is one key frame with its parameter sets', async (format, profile, pixels) => {
  const { codec, width, height } = format
  const picture = await encode(await createImage('1920x1080', 'teal'), format)
  expect(listUnits(picture, codec)).toEqual(pictureUnits[codec])
  const entries = 'stream=profile,width,height,pix_fmt,color_range,has_b_frames:frame=key_frame,pict_type'
  const shown = await pass(picture, 'ffprobe', `-v error -f ${codec} -show_entries ${entries} -of json pipe:0`)
  expect(JSON.parse(shown.toString())).toMatchObject({
    frames: [{ key_frame: 1, pict_type: 'I' }],
    streams: [{ profile, width, height, pix_fmt: pixels, color_range: 'tv', has_b_frames: 0 }],
  })
})

test('an image of another form stands between black bars, in its own colours', async () => {
  const picture = await encode(await createImage('400x400', 'red'), formatOf('h264', 'high', 640, 360))
  const rgb = await pass(picture, 'ffmpeg', '-v error -f h264 -i pipe:0 -pix_fmt rgb24 -f rawvideo pipe:1')
  const colourAt = (x: number) => [...rgb.subarray((180 * 640 + x) * 3, (180 * 640 + x) * 3 + 3)]
  const isNear = (colour: number[], expected: number[]) =>
    colour.every((value, index) => Math.abs(value - (expected[index] ?? 0)) <= 16)
  expect(rgb).toHaveLength(640 * 360 * 3)
  for (const x of [20, 620]) expect(isNear(colourAt(x), [0, 0, 0])).toBe(true)
  expect(isNear(colourAt(320), [254, 0, 0])).toBe(true)
})

test('what is no JPEG has no slate', async () => {
  await expect(encode(Buffer.from('<svg/>'), formatOf('h264', 'high', 640, 360))).rejects.toThrow('ffmpeg failed')
})
