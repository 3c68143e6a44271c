/**
 * Images that users upload as slates: what is accepted, and how it is encoded again. Relays and browsers get the result
 * alone, which has no bytes of the upload: no metadata, no thumbnails, and nothing behind the end of the picture.
 */
import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Metadata, Sharp, SharpOptions } from 'sharp'
import type { SlateImage } from '../../db/relay/slates.ts'
import { slateBytesMax, slateSideMax } from '../../domain/relay/slates.ts'
import { Refusal } from '../http/refusals.ts'
import { createFairQueue, type FairQueueBounds, NotStartedError } from '../identity/fair-queue.ts'

/** The encoded image fits in these. Players see it in the size of their stream. */
const encodedWidthMax = 1920
const encodedHeightMax = 1080
/** Noise takes more than a photo, and is encoded again. */
const encodedBytesMax = 512 * 1024
const qualities = [88, 70, 45, 20]
/** Of one encoding. A photo takes 0.3 s. */
const encodingSecondsMax = 10

const bounds: FairQueueBounds = {
  /** Each takes one of the four threads of libuv's pool, and up to 150 MB. */
  runningMax: 2,
  waitingMax: 16,
  waitSecondsMax: 10,
}

export interface SlateUploader {
  readonly userId: string
  /** The connection of the request. An image that has not begun when it closes is not decoded. */
  readonly socket: Socket
}

export interface SlateImages {
  /**
   * Refuses with `invalid_image`, and with `temporarily_unavailable` when too many images wait.
   * @param bytes at most {@link slateBytesMax}.
   */
  encode(bytes: Buffer, uploader: SlateUploader): Promise<SlateImage>
}

export function createSlateImages(): SlateImages {
  const queue = createFairQueue(bounds)
  return {
    encode: async (bytes, { userId, socket }) => {
      refuseOtherFormats(bytes)
      const image = await queue
        .run({ name: userId, connection: socket }, () => encode(bytes))
        .catch((error: unknown) => {
          if (error instanceof NotStartedError)
            throw new Refusal('temporarily_unavailable', { headers: { 'Retry-After': '5' } })
          throw error
        })
      return { digest: createHash('sha256').update(image).digest('hex'), image }
    },
  }
}

const invalidImage = (message: string): Refusal => new Refusal('invalid_image', { message })

/** What no other bytes begin with: what the content type says does not count. */
const pngSignature = Buffer.from('89504e470d0a1a0a', 'hex')
const jpegSignature = Buffer.from('ffd8ff', 'hex')

function refuseOtherFormats(bytes: Buffer): void {
  if (bytes.length === 0) throw invalidImage('The request has no image. Send a PNG or JPEG as the body.')
  const isPng = startsWith(bytes, pngSignature)
  if (!isPng && !startsWith(bytes, jpegSignature))
    throw invalidImage('This is neither a PNG nor a JPEG. Save the picture as PNG or JPEG and upload that.')
  if (isPng && isAnimated(bytes))
    throw invalidImage('The picture is animated. Save a single picture as PNG or JPEG and upload that.')
}

const startsWith = (bytes: Buffer, signature: Buffer): boolean => bytes.subarray(0, signature.length).equals(signature)

/** Whether a PNG has the chunk of animations before its picture. The decoder would show its first picture. */
function isAnimated(png: Buffer): boolean {
  for (let at = pngSignature.length; at + 8 <= png.length; at += 12 + png.readUInt32BE(at)) {
    const type = png.toString('latin1', at + 4, at + 8)
    if (type === 'acTL') return true
    if (type === 'IDAT') return false
  }
  return false
}

type CreateSharp = (bytes: Buffer, options: SharpOptions) => Sharp
let createSharp: Promise<CreateSharp> | undefined

/** Loading takes 30 MB, so it waits for the first image. */
const loadSharp = (): Promise<CreateSharp> => {
  createSharp ??= import('sharp').then(({ default: sharp }) => {
    sharp.cache(false)
    sharp.concurrency(1)
    return sharp
  })
  return createSharp
}

const decoding: SharpOptions = {
  failOn: 'error',
  limitInputPixels: slateSideMax * slateSideMax,
  sequentialRead: true,
}

async function encode(bytes: Buffer): Promise<Buffer> {
  const sharp = await loadSharp()
  refuseSize(await readOrRefuse(sharp(bytes, decoding).metadata()))
  for (const quality of qualities) {
    const picture = sharp(bytes, decoding)
      .timeout({ seconds: encodingSecondsMax })
      // By the orientation that cameras store.
      .autoOrient()
      .resize({ width: encodedWidthMax, height: encodedHeightMax, fit: 'inside', withoutEnlargement: true })
      .flatten({ background: '#000000' })
      .toColourspace('srgb')
      .jpeg({ quality, progressive: false, chromaSubsampling: '4:2:0' })
    const image = await readOrRefuse(picture.toBuffer())
    if (image.length <= encodedBytesMax) return image
  }
  throw invalidImage('The picture has too much detail. Upload one with fewer pixels.')
}

function refuseSize({ format, width, height, pages = 1 }: Metadata): void {
  if ((format !== 'png' && format !== 'jpeg') || pages > 1)
    throw invalidImage('This is not a single picture. Save it as PNG or JPEG and upload that.')
  if (width > slateSideMax || height > slateSideMax)
    throw invalidImage(
      `The picture has ${width} × ${height} pixels. Make it smaller: at most ${slateSideMax} × ${slateSideMax}.`,
    )
}

/** The messages of the decoder are about its own functions. */
async function readOrRefuse<Result>(decoded: Promise<Result>): Promise<Result> {
  try {
    return await decoded
  } catch (error) {
    if (error instanceof Error && /pixel limit/i.test(error.message))
      throw invalidImage(`The picture is too large. Make it smaller: at most ${slateSideMax} × ${slateSideMax} pixels.`)
    throw invalidImage('The picture is damaged or incomplete. Save it again as PNG or JPEG and upload that.')
  }
}
