/** A pseudo-random stream between two processes of `srt-live-transmit`, the SRT program of the protocol's authors. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createCipheriv, randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished } from 'vitest'
import { eventually } from '../relay-node/running.ts'

/** The payload of an SRT packet by custom: 7 packets of MPEG-TS. */
const payloadBytes = 1_316
const tickMillis = 20

type Process = ChildProcessByStdio<Writable, Readable, Readable>

export interface TransmitOptions {
  /** Whether it connects again after its connection broke. True by default. */
  readonly isReconnecting?: boolean
}

interface Transmission {
  readonly child: Process
  /** What it logged. */
  readonly errors: () => string
  readonly ended: Promise<unknown>
}

/** Starts `srt-live-transmit`, and ends it after the test. */
function transmit(source: string, target: string, { isReconnecting = true }: TransmitOptions = {}): Transmission {
  const options = ['-q', '-loglevel:warn', `-a:${isReconnecting ? 'yes' : 'no'}`, `-chunk:${payloadBytes}`]
  const child = spawn('srt-live-transmit', [...options, source, target], { stdio: ['pipe', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (text) => {
    errors = (errors + text).slice(-10_000)
  })
  // A pipe of a process that ended.
  child.stdin.on('error', () => {})
  onTestFinished(async () => {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  return { child, errors: () => errors, ended: once(child, 'exit') }
}

/** Publishes random bytes at a rate that may be changed, from the caller's connection to the end of the test. */
export class StreamSource {
  /** All bytes until now. Those before the connection are lost. */
  readonly #sent: Buffer[] = []
  readonly #random = createCipheriv('aes-128-ctr', randomBytes(16), randomBytes(16))
  readonly #timer: NodeJS.Timeout
  readonly #transmission: Transmission
  #kbps: number
  sentBytes = 0

  constructor(url: string, kbps: number, options?: TransmitOptions) {
    this.#kbps = kbps
    this.#transmission = transmit('file://con', url, options)
    const { child } = this.#transmission
    let [tickedAt, dueBytes] = [performance.now(), 0]
    this.#timer = setInterval(() => {
      const now = performance.now()
      dueBytes += ((now - tickedAt) * this.#kbps) / 8
      tickedAt = now
      const due = Math.floor(dueBytes / payloadBytes) * payloadBytes
      if (due === this.sentBytes) return
      const bytes = this.#random.update(Buffer.alloc(due - this.sentBytes))
      this.#sent.push(bytes)
      this.sentBytes += bytes.length
      child.stdin.write(bytes)
    }, tickMillis)
    onTestFinished(() => this.stop())
  }

  /** From now on. 0: its connection stays open, without data. */
  changeRate(kbps: number): void {
    this.#kbps = kbps
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** As when the power fails: its peer receives no notice. */
  vanish(): void {
    this.stop()
    this.#transmission.child.kill('SIGKILL')
  }

  readonly errors = () => this.#transmission.errors()

  get ended(): Promise<unknown> {
    return this.#transmission.ended
  }

  get sent(): Buffer {
    return Buffer.concat(this.#sent)
  }
}

/** Receives a stream. */
export class StreamSink {
  readonly #received: Buffer[] = []
  receivedBytes = 0
  readonly errors: () => string
  readonly ended: Promise<unknown>
  readonly #child: Process

  constructor(url: string, options?: TransmitOptions) {
    const { child, errors, ended } = transmit(url, 'file://con', options)
    this.#child = child
    this.errors = errors
    this.ended = ended
    child.stdout.on('data', (bytes: Buffer) => {
      this.#received.push(bytes)
      this.receivedBytes += bytes.length
    })
  }

  get received(): Buffer {
    return Buffer.concat(this.#received)
  }

  /** Reads nothing any more: soon its program cannot write, and does not read from its connection either. */
  pause(): void {
    this.#child.stdout.pause()
  }

  resume(): void {
    this.#child.stdout.resume()
  }

  /** Ends its connection, with a notice to the relay. */
  end(): void {
    this.#child.kill('SIGTERM')
  }

  untilReceived = (bytes: number): Promise<number> =>
    eventually(
      () => this.receivedBytes,
      (received) => received >= bytes,
    )
}

/** Waits for what was sent until now, and compares all that arrived since the first byte. */
export async function expectWholeStream(source: StreamSource, sink: StreamSink): Promise<void> {
  const { sentBytes } = source
  const first = source.sent.indexOf(sink.received.subarray(0, 64))
  expect(first).toBeGreaterThanOrEqual(0)
  await sink.untilReceived(sentBytes - first)
  const { received } = sink
  expect(received.equals(source.sent.subarray(first, first + received.length))).toBe(true)
}

/**
 * Waits until bytes arrive that were sent after now. An SRT connection that broke loses those until it is open again.
 */
export async function expectStreamGoesOn(source: StreamSource, sink: StreamSink): Promise<void> {
  const from = source.sentBytes
  const findLatest = async () => {
    await sleep(500)
    return source.sent.indexOf(sink.received.subarray(-64))
  }
  await eventually(findLatest, (position) => position >= from)
}

/** A UDP port that is free now. */
export async function findFreeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  await new Promise<void>((done) => socket.close(() => done()))
  return port
}
