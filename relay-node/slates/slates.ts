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
  #encoder: Command | undefined
  /** When {@link #encoder} was not found. */
  #missedAt = Number.NEGATIVE_INFINITY
  #isClosed = false
  #image: Image | undefined
  /** The latest first. */
  #wanted: VideoFormat[] = []
  #isEncoding = false
  /** Those that were used last are the last ones. */
  readonly #pictures = new Map<string, Buffer>()
  /** When the last attempt failed. */
  readonly #failures = new Map<string, number>()

  constructor(options: SlatesOptions) {
    this.#options = options
  }

  /** From now on pictures are made of the image with this digest; null for no image. */
  want(digest: string | null): void {
    if (digest === (this.#image?.digest ?? null) || this.#isClosed) return
    this.#image?.unwanted.abort()
    this.#image = undefined
    if (digest === null) return
    this.#image = { digest, unwanted: new AbortController(), bytes: undefined }
    void this.#encode()
  }

  /** A picture of this format may be needed soon. */
  prepare(format: VideoFormat): void {
    if (!hasSlates(format)) return
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

  /** It may be installed while the relay runs. */
  #findEncoder(): Command | undefined {
    const { searchPath, log, failureMillis = defaultFailureMillis } = this.#options
    if (this.#encoder !== undefined || performance.now() - this.#missedAt < failureMillis) return this.#encoder
    this.#encoder = findSlateEncoder(searchPath)
    if (this.#encoder !== undefined) return this.#encoder
    if (this.#missedAt < 0) log('info', 'this relay shows no slates while ffmpeg is not installed', {})
    this.#missedAt = performance.now()
    return undefined
  }

  /** Fetches the image and makes the wanted pictures, one at a time. */
  async #encode(): Promise<void> {
    const encoder = this.#image && !this.#isEncoding ? this.#findEncoder() : undefined
    if (encoder === undefined) return
    this.#isEncoding = true
    for (let image = this.#image; image !== undefined; image = this.#image) {
      image.bytes ??= await fetchSlate(image.digest, this.#options, image.unwanted.signal)
      // Another one is wanted meanwhile.
      if (image.bytes === undefined) continue
      const format = this.#findMissing(image)
      if (format === undefined) break
      await this.#make(encoder, image, image.bytes, format)
    }
    this.#isEncoding = false
  }

  #findMissing(image: Image): VideoFormat | undefined {
    return this.#wanted.find((format) => this.#isMissing(keyOf(image, format)))
  }

  async #make(command: Command, image: Image, bytes: Buffer, format: VideoFormat): Promise<void> {
    const { log, encodeMillisMax } = this.#options
    const { signal } = image.unwanted
    const key = keyOf(image, format)
    const limit = encodeMillisMax === undefined ? {} : { millisMax: encodeMillisMax }
    try {
      this.#keep(key, await encodeSlate(bytes, format, { command, signal, ...limit }))
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
