/**
 * A stream of numbered blocks between two processes of `srt-live-transmit`, which call again when their connection
 * breaks. Each block states when it was sent, so a player knows how old what it gets is.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'

/** The payload of an SRT packet by custom. */
const blockBytes = 1_316
const magic = Buffer.from('numbered')
const tickMillis = 20
/** The pause before another call. SRT itself takes 5 s to find out that its peer is gone. */
const callAgainMillis = 1_000
const silenceMillisMin = 500

export interface Block {
  readonly sentAt: number
  readonly receivedAt: number
}

type Direction = 'publish' | 'play'

/** Runs the program of the protocol's authors, again after each end. @returns a function that ends it for good. */
function keepCalling(
  direction: Direction,
  url: () => string,
  onChild: (child: ChildProcess) => void,
): () => Promise<void> {
  let isOver = false
  let child: ChildProcess | undefined
  const run = async () => {
    while (!isOver) {
      const ends = direction === 'publish' ? ['file://con', url()] : [url(), 'file://con']
      const options = ['-q', '-loglevel:fatal', '-a:no', `-chunk:${blockBytes}`]
      child = spawn('srt-live-transmit', [...options, ...ends], { stdio: ['pipe', 'pipe', 'ignore'] })
      child.stdin?.on('error', () => {})
      onChild(child)
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await sleep(callAgainMillis)
    }
  }
  const running = run()
  return async () => {
    isOver = true
    child?.kill('SIGKILL')
    await running
  }
}

/** Publishes blocks at a constant rate. @param url read at each call. @returns a function that ends the stream. */
export function publishNumbered(url: () => string, kbps = 1_000): () => Promise<void> {
  let child: ChildProcess | undefined
  const end = keepCalling('publish', url, (next) => {
    child = next
  })
  const startedAt = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * kbps) / 8 / blockBytes)
    for (; sent < due; sent += 1) {
      const block = Buffer.alloc(blockBytes, 0x47)
      magic.copy(block)
      block.writeDoubleBE(Date.now(), magic.length)
      child?.stdin?.write(block)
    }
  }, tickMillis)
  return () => {
    clearInterval(timer)
    return end()
  }
}

/** Plays a stream. @param url read at each call. */
export function playNumbered(url: () => string) {
  let last: Block | undefined
  /** The times in which nothing arrived for longer than usual. */
  const silences: { readonly from: number; readonly until: number }[] = []
  const end = keepCalling('play', url, (child) => {
    let rest = Buffer.alloc(0)
    child.stdout?.on('data', (bytes: Buffer) => {
      rest = Buffer.concat([rest, bytes])
      for (; rest.length >= blockBytes; rest = rest.subarray(blockBytes)) {
        const isWhole = rest.subarray(0, magic.length).equals(magic)
        if (!isWhole) continue
        const receivedAt = Date.now()
        if (last && receivedAt - last.receivedAt > silenceMillisMin)
          silences.push({ from: last.receivedAt, until: receivedAt })
        last = { sentAt: rest.readDoubleBE(magic.length), receivedAt }
      }
    })
  })
  return {
    end,
    /** The longest time without any block that ended after a moment. */
    longestSilenceMillis: (moment: number): number =>
      Math.max(0, ...silences.filter(({ until }) => until > moment).map(({ from, until }) => until - from)),
    /** Resolves with the first block that was sent after a moment. */
    async firstSentAfter(moment: number, secondsMax: number): Promise<Block> {
      const until = Date.now() + secondsMax * 1000
      while (last === undefined || last.sentAt <= moment) {
        if (Date.now() > until) throw new Error(`no block that was sent after the fault came within ${secondsMax} s`)
        await sleep(10)
      }
      return last
    },
  }
}
