/**
 * The slates of a relay: its present image as pictures in the formats of its streams, encoded in the background and
 * kept.
 */
import type { VideoFormat } from '../../domain/relay/stream-format.ts'
import type { Command } from '../child-command.ts'
import { fetchSlate, type SlateSource } from './fetch-slate.ts'
import { encodeSlate, findSlateEncoder, hasSlates } from './slate-encoder.ts'

export interface SlatesOptions extends SlateSource {
  /** The folders of programs, as in `PATH`. */
  readonly searchPath: string
  readonly encodeMillisMax?: number
  /** How long an attempt that failed is not repeated. A minute by default. */
  readonly failureMillis?: number
}

const picturesMax = 8
const pictureBytesMax = 16 * 1024 * 1024
/** A stream has one format at a time. */
const wantedMax = 4
const defaultFailureMillis = 60_000

export class Slates {
  readonly #options: SlatesOptions
  readonly #encoder: Command | undefined
  #isClosed = false
  #image: Image | undefined
  /** The latest first. */
  #wanted: VideoFormat[] = []
  #isEncoding = false
  #hasLogged = false
  /** Those that were used last are the last ones. */
  readonly #pictures = new Map<string, Buffer>()
  /** When the last attempt failed. */
  readonly #failures = new Map<string, number>()

  constructor(options: SlatesOptions) {
    this.#options = options
    this.#encoder = findSlateEncoder(options.searchPath)
  }

  /** From now on pictures are made of the image with this digest; null for no image. */
  want(digest: string | null): void {
    if (digest === (this.#image?.digest ?? null) || this.#isClosed) return
    this.#image?.unwanted.abort()
    this.#image = undefined
    if (digest === null) return
    if (this.#encoder === undefined) {
      if (!this.#hasLogged) this.#options.log('info', 'this relay shows no slates: ffmpeg is not installed', {})
      this.#hasLogged = true
      return
    }
    const image: Image = { digest, unwanted: new AbortController(), bytes: undefined }
    this.#image = image
    void this.#fetch(image)
  }

  /** A picture of this format may be needed soon. */
  prepare(format: VideoFormat): void {
    if (this.#encoder === undefined || !hasSlates(format)) return
    const name = nameOf(format)
    if (this.#wanted[0] === undefined || nameOf(this.#wanted[0]) !== name)
      this.#wanted = [format, ...this.#wanted.filter((each) => nameOf(each) !== name)].slice(0, wantedMax)
    void this.#encode()
  }

  /** @returns undefined while there is none, also where one is being made. */
  find(format: VideoFormat): Buffer | undefined {
    const key = this.#image && keyOf(this.#image, format)
    const picture = key === undefined ? undefined : this.#pictures.get(key)
    if (key === undefined || picture === undefined) {
      this.prepare(format)
      return undefined
    }
    this.#pictures.delete(key)
    this.#pictures.set(key, picture)
    return picture
  }

  close(): void {
    this.#isClosed = true
    this.#image?.unwanted.abort()
    this.#image = undefined
  }

  async #fetch(image: Image): Promise<void> {
    image.bytes = await fetchSlate(image.digest, this.#options, image.unwanted.signal)
    await this.#encode()
  }

  /** Makes the wanted pictures, one at a time. */
  async #encode(): Promise<void> {
    if (this.#isEncoding) return
    this.#isEncoding = true
    for (;;) {
      const image = this.#image
      const format = image?.bytes && this.#wanted.find((each) => this.#isMissing(keyOf(image, each)))
      if (!image?.bytes || !format) break
      await this.#make(image, image.bytes, format)
    }
    this.#isEncoding = false
  }

  async #make(image: Image, bytes: Buffer, format: VideoFormat): Promise<void> {
    const { log, encodeMillisMax } = this.#options
    const { signal } = image.unwanted
    if (this.#encoder === undefined) return
    const key = keyOf(image, format)
    const limit = encodeMillisMax === undefined ? {} : { millisMax: encodeMillisMax }
    try {
      this.#keep(key, await encodeSlate(bytes, format, { command: this.#encoder, signal, ...limit }))
    } catch (error) {
      if (signal.aborted) return
      log('warn', 'a slate could not be encoded', { format: nameOf(format), error: (error as Error).message })
      if (this.#failures.size >= picturesMax) this.#failures.clear()
      this.#failures.set(key, performance.now())
    }
  }

  #isMissing(key: string): boolean {
    const { failureMillis = defaultFailureMillis } = this.#options
    const failedAt = this.#failures.get(key) ?? Number.NEGATIVE_INFINITY
    return !this.#pictures.has(key) && performance.now() - failedAt >= failureMillis
  }

  #keep(key: string, picture: Buffer): void {
    this.#pictures.set(key, picture)
    let bytes = [...this.#pictures.values()].reduce((sum, { length }) => sum + length, 0)
    for (const [oldest, { length }] of this.#pictures) {
      if (this.#pictures.size <= picturesMax && bytes <= pictureBytesMax) return
      this.#pictures.delete(oldest)
      bytes -= length
    }
  }
}

interface Image {
  readonly digest: string
  readonly unwanted: AbortController
  /** Undefined until it was fetched. */
  bytes: Buffer | undefined
}

/** The rate is not part of it, since each picture of a stream has its own timestamp. */
const nameOf = ({ codec, profile, width, height }: VideoFormat): string => `${codec} ${profile} ${width}x${height}`

const keyOf = ({ digest }: Image, format: VideoFormat): string => `${digest} ${nameOf(format)}`
