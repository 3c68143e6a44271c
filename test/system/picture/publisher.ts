/** An encoder that publishes an encoded stream in real time, and keeps what it has sent. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

const packetBytes = 188

interface Chunk {
  readonly at: number
  readonly offset: number
}

interface Source {
  readonly file: string
  /** Where the publisher begins in the file. */
  readonly fromSeconds: number
  /** The first timestamp of the stream. */
  readonly offsetSeconds: number
}

export class Publisher {
  readonly #parts: Buffer[] = []
  readonly #chunks: Chunk[] = []
  readonly #children: readonly ChildProcess[]
  readonly #payloads = new Set<string>()
  /** The beginning of a packet whose rest has not arrived. */
  #unread: Buffer = Buffer.alloc(0)
  #readParts = 0
  #bytes = 0
  /** The times between which the networks were away, by the clock of `performance`. */
  readonly outages: { readonly from: number; to: number }[] = []

  /** @param latency in milliseconds, of the SRT connection. */
  constructor(url: string, { file, fromSeconds, offsetSeconds }: Source, latency: number) {
    const input = ['-re', '-ss', `${fromSeconds}`, '-i', file, '-map', '0', '-c', 'copy']
    const output = ['-output_ts_offset', `${offsetSeconds}`, '-flush_packets', '1', '-f', 'mpegts', 'pipe:1']
    const encoder = spawn('ffmpeg', ['-nostdin', '-v', 'error', ...input, ...output], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const options = ['-q', '-loglevel:fatal', '-a:yes', '-chunk:1316']
    const target = `${url}&mode=caller&latency=${latency}`
    const caller = spawn('srt-live-transmit', [...options, 'file://con', target], {
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    caller.stdin.on('error', () => {})
    encoder.stdout.on('data', (chunk: Buffer) => {
      this.#chunks.push({ at: performance.now(), offset: this.#bytes })
      this.#parts.push(chunk)
      this.#bytes += chunk.length
      caller.stdin.write(chunk)
    })
    this.#children = [caller, encoder]
    onTestFinished(() => this.vanish())
  }

  /** As when the power fails: its peer receives no notice, and the last packet may be cut. */
  async vanish(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return
        const ended = once(child, 'exit')
        child.kill('SIGKILL')
        await ended
      }),
    )
  }

  get sent(): Buffer {
    return Buffer.concat(this.#parts)
  }

  /** When the byte was sent. */
  sentAt(offset: number): number {
    return this.#chunks.findLast((chunk) => chunk.offset <= offset)?.at ?? Number.NaN
  }

  /** Whether one of the received packets was sent: their payloads pass unchanged. */
  isPartOf(received: Buffer): boolean {
    const sent = Buffer.concat([this.#unread, ...this.#parts.slice(this.#readParts)])
    this.#readParts = this.#parts.length
    for (const payload of payloadsOf(sent)) this.#payloads.add(payload)
    this.#unread = sent.subarray(sent.length - (sent.length % packetBytes))
    return payloadsOf(received).some((payload) => this.#payloads.has(payload))
  }
}

/** The ends of all packets that are full of the payload of a stream. */
function payloadsOf(packets: Buffer): string[] {
  const payloads: string[] = []
  for (let at = 0; at + packetBytes <= packets.length; at += packetBytes) {
    const isFull = ((packets[at + 3] ?? 0) & 0x30) === 0x10 && packets[at + packetBytes - 1] !== 0xff
    if (isFull) payloads.push(packets.toString('latin1', at + 60, at + packetBytes))
  }
  return payloads
}
