/**
 * A live stream of test pictures with sound, as an encoder sends it: H.264 and AAC in MPEG-TS over SRT. It calls again
 * when its connection breaks or is refused. {@link watchPicture} judges what arrives in OBS.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from './at-end.ts'
import { beepSource, flashFilter } from './beats.ts'
import { endChild, withParent } from './obs-process.ts'
import { pictureFilter } from './picture-code.ts'

const packetBytes = 188
/** The payload of an SRT packet by custom. */
const payloadPackets = 7
/** Ignored by every reader: the rest of the bitrate. */
const nullPacket = Buffer.alloc(packetBytes, 0xff)
nullPacket.set([0x47, 0x1f, 0xff, 0x10])
const tickMillis = 20
const callAgainMillis = 1_000

export interface PictureStreamOptions {
  /** kbit/s with what fills it up. The pictures and the sound alone have about 250. */
  readonly kbps?: number
  /** In milliseconds, of the SRT connection. */
  readonly latency?: number
  /**
   * A flash and a beep at each second of the stream's time instead of a tone, for {@link startBeatJudge}. The encoder
   * starts when the connection is open, as that of a phone does, so that no old pictures wait for it.
   */
  readonly hasBeats?: boolean
}

export interface PictureStream {
  /** As when the power fails: the relay receives no notice. */
  kill(): Promise<void>
  /** Ends the connection. */
  stop(): Promise<void>
  /** Starts the stream, with a new encoder. */
  start(): void
  /** Changes the bitrate without a break. */
  setKbps(kbps: number): void
  /** When the latest encoder gave its first bytes, which are those of a key frame; undefined before. */
  firstBytesAt(): number | undefined
}

/** Starts the stream, and ends it after the tests of the file. @param url as in `connect.srt_url`. */
export function startPictureStream(
  url: string,
  { kbps = 1_500, latency = 200, hasBeats = false }: PictureStreamOptions = {},
) {
  let bitrate = kbps
  let calls: Calls | undefined
  const end = async (signal: NodeJS.Signals) => {
    await calls?.end(signal)
    calls = undefined
  }
  const stream: PictureStream = {
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    start() {
      calls ??= keepCalling(`${url}&mode=caller&latency=${latency}`, hasBeats, () => bitrate)
    },
    setKbps(changed) {
      bitrate = changed
    },
    firstBytesAt: () => calls?.firstBytesAt(),
  }
  stream.start()
  atEnd(stream.kill)
  return stream
}

interface Calls {
  end(signal: NodeJS.Signals): Promise<void>
  firstBytesAt(): number | undefined
}

/** Calls with a new encoder each time. */
function keepCalling(url: string, hasBeats: boolean, kbps: () => number): Calls {
  const over = new AbortController()
  let children: readonly ChildProcess[] = []
  let firstBytesAt: number | undefined
  const run = async () => {
    while (!over.signal.aborted) {
      const caller = startCaller(url)
      children = [caller]
      const callerEnds = once(caller, 'exit')
      if (!hasBeats || (await isConnected(caller, callerEnds))) {
        firstBytesAt = undefined
        const encoder = startEncoder(hasBeats)
        children = [encoder, caller]
        encoder.stdout?.once('data', () => {
          firstBytesAt = Date.now()
        })
        const timer = fillUp(encoder, caller, kbps)
        await Promise.race([callerEnds, once(encoder, 'exit')])
        clearInterval(timer)
      }
      await Promise.all(children.map((child) => endChild(child)))
      await sleep(callAgainMillis, undefined, { signal: over.signal }).catch(() => {})
    }
  }
  const running = run()
  return {
    async end(signal) {
      over.abort()
      // The caller first, since its end ends the encoder.
      for (const child of children.toReversed()) await endChild(child, signal)
      await running
    },
    firstBytesAt: () => firstBytesAt,
  }
}

function startEncoder(hasBeats: boolean): ChildProcess {
  const tone = hasBeats ? beepSource : 'sine=frequency=440:sample_rate=48000'
  const sound = ['-f', 'lavfi', '-i', `${tone},arealtime`]
  const video = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '30', '-pix_fmt', 'yuv420p']
  const [program = '', ...args] = withParent('ffmpeg', '-nostdin', '-loglevel', 'error', '-f', 'lavfi', '-i')
  const output = ['-c:a', 'aac', '-b:a', '64k', '-flush_packets', '1', '-f', 'mpegts', 'pipe:1']
  return spawn(
    program,
    [...args, hasBeats ? `${pictureFilter()},${flashFilter}` : pictureFilter(), ...sound, ...video, ...output],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  )
}

function startCaller(url: string): ChildProcess {
  const options = ['-loglevel:fatal', '-a:no', `-chunk:${packetBytes * payloadPackets}`]
  const [program = '', ...args] = withParent('srt-live-transmit', ...options, 'file://con', url)
  const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  child.stderr?.resume()
  // A pipe of a process that ended.
  child.stdin?.on('error', () => {})
  return child
}

async function isConnected(caller: ChildProcess, ends: Promise<unknown>): Promise<boolean> {
  const connected = new Promise<boolean>((done) => {
    caller.stderr?.on('data', (text) => String(text).includes('SRT target connected') && done(true))
  })
  return Promise.race([connected, ends.then(() => false)])
}

/** Passes the packets of the encoder on, filled up with empty ones to the bitrate. */
function fillUp(encoder: ChildProcess, caller: ChildProcess, kbps: () => number): NodeJS.Timeout {
  let waiting = Buffer.alloc(0)
  let last = performance.now()
  let allowedBytes = 0
  encoder.stdout?.on('data', (bytes: Buffer) => {
    waiting = Buffer.concat([waiting, bytes])
  })
  return setInterval(() => {
    const now = performance.now()
    allowedBytes += ((now - last) * kbps()) / 8
    last = now
    for (; allowedBytes >= packetBytes * payloadPackets; allowedBytes -= packetBytes * payloadPackets) {
      const whole = Math.min(Math.floor(waiting.length / packetBytes), payloadPackets) * packetBytes
      const filling = Array.from({ length: payloadPackets - whole / packetBytes }, () => nullPacket)
      caller.stdin?.write(Buffer.concat([waiting.subarray(0, whole), ...filling]))
      waiting = waiting.subarray(whole)
    }
  }, tickMillis)
}
