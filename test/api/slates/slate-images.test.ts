/** Which images become slates, and what is left of them. */
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { crc32, deflateSync } from 'node:zlib'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../api/http/refusals.ts'
import { createSlateImages } from '../../../api/slates/slate-images.ts'
import { slateSideMax } from '../../../domain/relay/slates.ts'

const uploader = { userId: 'a user', socket: new EventEmitter().setMaxListeners(100) as Socket }
const images = createSlateImages()
const encode = async (bytes: Buffer) => (await images.encode(bytes, uploader)).image
const refusalOf = async (bytes: Buffer): Promise<string> => {
  const error = await encode(bytes).catch((thrown: unknown) => thrown)
  if (!(error instanceof Refusal)) throw new Error(`not refused: ${String(error)}`)
  return `${error.status} ${error.code}: ${error.message}`
}

const create = (width: number, height: number, channels: 3 | 4 = 3) =>
  sharp({ create: { width, height, channels, background: { r: 200, g: 30, b: 30, alpha: 0 } } })
const noise = (width: number, height: number) =>
  sharp({
    create: { width, height, channels: 3, background: '#808080', noise: { type: 'gaussian', mean: 128, sigma: 80 } },
  })

const signature = Buffer.from('89504e470d0a1a0a', 'hex')
function chunk(type: string, data = Buffer.alloc(0)): Buffer {
  const typed = Buffer.concat([Buffer.from(type), data])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(data.length)
  frame.writeUInt32BE(crc32(typed), 4)
  return Buffer.concat([frame.subarray(0, 4), typed, frame.subarray(4)])
}
/** A grey PNG whose header states this size. */
function pngOf(width: number, height: number, rows = height, before: readonly Buffer[] = []): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width)
  header.writeUInt32BE(height, 4)
  header.set([8, 0], 8)
  const pixels = deflateSync(Buffer.alloc(rows * (width + 1)))
  return Buffer.concat([signature, chunk('IHDR', header), ...before, chunk('IDAT', pixels), chunk('IEND')])
}
const animation = chunk('acTL', Buffer.from('0000000200000000', 'hex'))

describe('a picture', () => {
  test.each([
    ['a PNG', () => create(640, 360).png()],
    ['a JPEG', () => create(640, 360).jpeg()],
    ['a progressive JPEG', () => create(640, 360).jpeg({ progressive: true })],
    ['an interlaced PNG', () => create(640, 360).png({ progressive: true })],
    ['a PNG with a palette', () => create(640, 360).png({ palette: true })],
    ['a grey PNG', () => create(640, 360).greyscale().png()],
    ['a PNG with 16 bits', () => create(640, 360).toColourspace('rgb16').png()],
    ['a JPEG in CMYK', () => create(640, 360).toColourspace('cmyk').jpeg()],
  ])('is encoded as JPEG with three channels and without metadata: %s', async (_, make) => {
    const image = await encode(await make().keepMetadata().toBuffer())
    expect(await sharp(image).metadata()).toMatchObject({
      format: 'jpeg',
      width: 640,
      height: 360,
      channels: 3,
      space: 'srgb',
      isProgressive: false,
      chromaSubsampling: '4:2:0',
    })
    const { exif, icc, xmp, iptc } = await sharp(image).metadata()
    expect([exif, icc, xmp, iptc]).toEqual([undefined, undefined, undefined, undefined])
  })

  test('of up to 4096 × 4096 pixels is made smaller, and a small one stays as it is', async () => {
    const sizeOf = async (width: number, height: number) => {
      const made = await sharp(await encode(await create(width, height).png().toBuffer())).metadata()
      return [made.width, made.height]
    }
    expect(await sizeOf(slateSideMax, slateSideMax)).toEqual([1080, 1080])
    expect(await sizeOf(slateSideMax, 1)).toEqual([1920, 1])
    expect(await sizeOf(2560, 1440)).toEqual([1920, 1080])
    expect(await sizeOf(1, 1)).toEqual([1, 1])
  })

  test('has black where it was transparent', async () => {
    const image = await encode(await create(16, 16, 4).png().toBuffer())
    const { channels } = await sharp(image).stats()
    expect(channels.map(({ max }) => max)).toEqual([0, 0, 0])
  })

  test('stands as the camera was held', async () => {
    const image = await encode(await create(640, 360).withMetadata({ orientation: 6 }).jpeg().toBuffer())
    expect(await sharp(image).metadata()).toMatchObject({ width: 360, height: 640 })
  })

  test('of noise takes at most half a megabyte', async () => {
    const upload = await noise(1920, 1080).jpeg({ quality: 90 }).toBuffer()
    expect((await encode(upload)).length).toBeLessThanOrEqual(512 * 1024)
  })

  test('that is sent twice has one digest', async () => {
    const upload = await create(64, 64).png().toBuffer()
    const [first, second] = await Promise.all([images.encode(upload, uploader), images.encode(upload, uploader)])
    expect(first.digest).toBe(second?.digest)
  })
})

describe('an upload is refused with what to do', () => {
  const text = (content: string) => async () => Buffer.from(content)
  test.each([
    ['nothing', async () => Buffer.alloc(0), /has no image/],
    ['text', text('hello'), /neither a PNG nor a JPEG/],
    ['SVG', text('<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'), /neither a PNG/],
    ['GIF', () => create(8, 8).gif().toBuffer(), /neither a PNG nor a JPEG/],
    ['WebP', () => create(8, 8).webp().toBuffer(), /neither a PNG nor a JPEG/],
    ['TIFF', () => create(8, 8).tiff().toBuffer(), /neither a PNG nor a JPEG/],
    [
      'a page with a picture behind it',
      async () => Buffer.concat([Buffer.from('<html>'), pngOf(8, 8)]),
      /neither a PNG/,
    ],
    ['an animated PNG', async () => pngOf(8, 8, 8, [animation]), /is animated/],
    ['the signature of a PNG alone', async () => signature, /damaged or incomplete/],
    ['the signature of a JPEG alone', async () => Buffer.from('ffd8ffe000104a464946', 'hex'), /damaged or incomplete/],
    ['a PNG that ends early', async () => (await noise(99, 99).png().toBuffer()).subarray(0, 9000), /damaged or incom/],
    [
      'a JPEG that ends early',
      async () => (await noise(99, 99).jpeg().toBuffer()).subarray(0, 2000),
      /damaged or incom/,
    ],
    ['a PNG with too few rows', async () => pngOf(64, 64, 10), /damaged or incomplete/],
    ['a PNG of 4097 columns', async () => pngOf(slateSideMax + 1, 1), /4097 × 1 pixels. Make it smaller/],
    [
      'a JPEG of 4097 rows',
      () =>
        create(1, slateSideMax + 1)
          .jpeg()
          .toBuffer(),
      /1 × 4097 pixels. Make it smaller/,
    ],
    ['a bomb of 2 gigapixels', async () => pngOf(46_000, 46_000, 40), /Make it smaller/],
    ['a bomb that states a size of 2^31', async () => pngOf(0x7fff_ffff, 0x7fff_ffff, 0), /Make it smaller|damaged/],
    ['a PNG without pixels', async () => pngOf(0, 0), /damaged or incomplete/],
  ])('%s', async (_, make, reason) => {
    const refusal = await refusalOf(await make())
    expect(refusal).toMatch(/^400 invalid_image: /)
    expect(refusal).toMatch(reason)
  })

  test('a JPEG with hundreds of scans', async () => {
    const jpeg = await create(4096, 4096).jpeg({ progressive: true }).toBuffer()
    const scan = jpeg.subarray(jpeg.lastIndexOf(Buffer.from('ffda', 'hex')), -2)
    const bomb = Buffer.concat([jpeg.subarray(0, -2), ...Array.from({ length: 400 }, () => scan), jpeg.subarray(-2)])
    expect(bomb.length).toBeLessThan(4 * 1024 * 1024)
    expect(await refusalOf(bomb)).toMatch(/^400 invalid_image: /)
  })

  test('random changes of a picture, or they are a picture', async () => {
    const seeds = [await noise(64, 64).png().toBuffer(), await noise(64, 64).jpeg().toBuffer()]
    let random = 7
    const next = (below: number) => {
      random = (random * 1_103_515_245 + 12_345) % 2_147_483_648
      return random % below
    }
    for (let round = 0; round < 200; round += 1) {
      const bytes = Buffer.from(seeds[round % 2] as Buffer)
      for (let change = 0; change < 5; change += 1) bytes[next(bytes.length)] = next(256)
      const made = await encode(bytes).catch((error: unknown) => error)
      if (Buffer.isBuffer(made)) expect((await sharp(made).metadata()).format).toBe('jpeg')
      else expect(made).toMatchObject({ code: 'invalid_image' })
    }
  })
})

test('uploads of one account beyond the queue are refused for now, and those that wait are encoded', async () => {
  const upload = await noise(256, 256).png().toBuffer()
  const outcomes = await Promise.allSettled(Array.from({ length: 40 }, () => encode(upload)))
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(outcomes.length - refused.length).toBe(18)
  for (const { reason } of refused) expect(reason).toMatchObject({ code: 'temporarily_unavailable' })
})
