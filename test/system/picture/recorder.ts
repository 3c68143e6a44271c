/** A player that keeps what it receives, with the times of arrival. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

export class Recorder {
  readonly #parts: Buffer[] = []
  readonly #arrivals: { readonly at: number; readonly to: number }[] = []
  readonly #child: ChildProcess
  receivedBytes = 0
  errors = ''

  constructor(url: string) {
    const options = ['-q', '-loglevel:error', '-a:no', '-chunk:1316', `${url}&mode=caller&latency=300`, 'file://con']
    const program = ['stdbuf', '-o0', 'srt-live-transmit', ...options]
    const child = spawn(program[0] ?? '', program.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.on('data', (chunk: Buffer) => {
      this.#parts.push(chunk)
      this.receivedBytes += chunk.length
      this.#arrivals.push({ at: performance.now(), to: this.receivedBytes })
    })
    child.stderr.on('data', (text) => {
      this.errors = (this.errors + text).slice(-5_000)
    })
    this.#child = child
    onTestFinished(() => this.end())
  }

  get isConnected(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async end(): Promise<void> {
    if (!this.isConnected) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  get received(): Buffer {
    return Buffer.concat(this.#parts)
  }

  /** When all bytes before the offset had arrived. */
  arrivedAt(offset: number): number {
    let [low, high] = [0, this.#arrivals.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#arrivals[middle]?.to ?? 0) < offset) low = middle + 1
      else high = middle
    }
    return this.#arrivals[low]?.at ?? Number.NaN
  }
}
