/** What a relay makes of streams by itself, as ffmpeg reads it: silence, repeated pictures, sizes. */
import { execFileSync, spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import type { AudioFormat } from '../../domain/relay/stream-format.ts'
import { createH264SkipPictures } from '../../relay-node/transport-stream/h264-skip-pictures.ts'
import { createHevcSkipPictures } from '../../relay-node/transport-stream/hevc-skip-pictures.ts'
import { packetize } from '../../relay-node/transport-stream/packet.ts'
import { buildPes } from '../../relay-node/transport-stream/pes.ts'
import { type Program, writePat, writePmt } from '../../relay-node/transport-stream/program-tables.ts'
import { readSequenceParameters } from '../../relay-node/transport-stream/sequence-parameters.ts'
import { silentFrame, streamTypeOf } from '../../relay-node/transport-stream/silence.ts'
import { parameterSetsOf } from '../../relay-node/transport-stream/video-units.ts'

const pictureOf = (size: string, pixels: string, args: readonly string[]): Buffer =>
  execFileSync(
    'ffmpeg',
    `-nostdin -v error -f lavfi -i testsrc2=size=${size}:rate=30 -frames:v 1 -pix_fmt ${pixels}`
      .split(' ')
      .concat(args, '-'),
  )

/** Decodes the input, and reports what ffmpeg complains about. */
function decode(input: Buffer, args: readonly string[]): { readonly output: string; readonly complaints: string } {
  const { stdout, stderr } = spawnSync('ffmpeg', ['-nostdin', '-v', 'warning', '-i', 'pipe:0', ...args, '-'], {
    input,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return { output: stdout, complaints: stderr }
}

const h264 = ['-c:v', 'libx264', '-f', 'h264']
const h265 = (parameters = 'wpp=1') => ['-c:v', 'libx265', '-x265-params', `log-level=none:${parameters}`, '-f', 'hevc']
const h264Encoders = [
  { name: 'CABAC', size: '640x360', pixels: 'yuv420p', args: ['-preset', 'veryfast', ...h264] },
  { name: 'CAVLC', size: '640x360', pixels: 'yuv420p', args: ['-profile:v', 'baseline', ...h264] },
  { name: 'weighted prediction', size: '320x180', pixels: 'yuv420p', args: ['-preset', 'slow', '-bf', '3', ...h264] },
  { name: '10 bits', size: '320x180', pixels: 'yuv420p10le', args: h264 },
  {
    name: 'another size than macroblocks',
    size: '1918x1078',
    pixels: 'yuv420p',
    args: ['-preset', 'ultrafast', ...h264],
  },
]

const hevcEncoders = [
  { name: 'rows in parallel', size: '640x360', pixels: 'yuv420p', args: h265() },
  { name: 'rows in turn', size: '640x360', pixels: 'yuv420p', args: h265('wpp=0') },
  { name: 'small blocks', size: '320x180', pixels: 'yuv420p', args: h265('ctu=16') },
  { name: '10 bits', size: '1278x718', pixels: 'yuv420p10le', args: h265() },
  { name: 'blocks without loss', size: '320x180', pixels: 'yuv420p', args: h265('cu-lossless=1:weightp=1') },
]
const encoders = [
  ...h264Encoders.map((each) => Object.assign(each, { create: createH264SkipPictures })),
  ...hevcEncoders.map((each) => Object.assign(each, { create: createHevcSkipPictures })),
]

test.each(encoders)('pictures that repeat a key frame look like it: $create.name, $name', (encoder) => {
  const key = pictureOf(encoder.size, encoder.pixels, encoder.args)
  const skips = encoder.create(key)
  const repeats = Array.from({ length: 60 }, (_, index) => skips?.write(index + 1) ?? Buffer.alloc(0))
  const { output, complaints } = decode(Buffer.concat([key, ...repeats, key]), ['-f', 'framemd5'])
  expect(complaints).toBe('')
  const sums = output
    .split('\n')
    .flatMap((line) => (line === '' || line.startsWith('#') ? [] : line.split(',').slice(-1)))
  expect(sums).toHaveLength(62)
  expect(new Set(sums).size).toBe(1)
  expect(Math.max(...repeats.map(({ length }) => length))).toBeLessThan(300)
})

const aac = (codec: AudioFormat['codec']): AudioFormat[] =>
  [1, 2, 3, 4, 5, 6, 8].map((channels) => ({ codec, sampleRate: channels === 2 ? 44_100 : 48_000, channels }))
const formats: AudioFormat[] = [
  ...aac('aac_adts'),
  ...aac('aac_latm'),
  { codec: 'opus', sampleRate: 48_000, channels: 1 },
  { codec: 'opus', sampleRate: 48_000, channels: 2 },
]

test.each(formats)('silence of $codec at $sampleRate Hz with $channels channels is decoded as such', (format) => {
  const pids = { pmt: 0x1000, audio: 0x101 }
  const program: Program = {
    transportStreamId: 1,
    number: 1,
    pmtPid: pids.pmt,
    pcrPid: pids.audio,
    descriptors: Buffer.alloc(0),
    streams: [{ pid: pids.audio, ...streamTypeOf(format) }],
  }
  const payload = silentFrame(format) ?? Buffer.alloc(0)
  const streamId = format.codec === 'opus' ? 0xbd : 0xc0
  const frames = Array.from({ length: 100 }, (_, index) => {
    const packet = packetize(pids.audio, buildPes({ streamId, pts: 90_000 + index * 1_920, payload }))
    packet[3] = ((packet[3] ?? 0) & 0xf0) | (index % 16)
    return packet
  })
  const tables = [packetize(0, writePat(program, 0)), packetize(pids.pmt, writePmt(program, 0))]
  const { output, complaints } = decode(Buffer.concat([...tables, ...frames]), ['-f', 's16le', '-ac', '1'])
  expect(complaints).toBe('')
  expect(output.length).toBeGreaterThan(90 * 960 * 2)
  expect(output).toMatch(/^\0+$/)
})

const sizes = [
  { codec: 'h264', size: '1918x1078', pixels: 'yuv420p', args: ['-profile:v', 'high', ...h264], profile: 'high' },
  { codec: 'h264', size: '640x360', pixels: 'yuv420p', args: ['-profile:v', 'baseline', ...h264], profile: 'baseline' },
  { codec: 'h264', size: '320x180', pixels: 'yuv420p10le', args: h264, profile: 'high10' },
  { codec: 'hevc', size: '1278x718', pixels: 'yuv420p', args: ['-c:v', 'libx265', '-f', 'hevc'], profile: 'main' },
  { codec: 'hevc', size: '640x360', pixels: 'yuv420p10le', args: ['-c:v', 'libx265', '-f', 'hevc'], profile: 'main10' },
] as const

test.each(sizes)(
  'the size and the profile of $codec are read: $size, $profile',
  ({ codec, size, pixels, args, profile }) => {
    const { sps } = parameterSetsOf(codec, pictureOf(size, pixels, args))
    const [width, height] = size.split('x').map(Number)
    expect(sps && readSequenceParameters(codec, sps)).toMatchObject({ width, height, profile })
  },
)
