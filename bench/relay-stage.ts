/**
 * What the stage of a relay costs: CPU time at the cap with one player, and latency at the bitrate of a phone. Relays
 * with the stage and without it get the same MPEG-TS. The SRT connections have no latency of their own (`tsbpdmode=0`),
 * so that what is measured is the way through the programs.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RelayPorts } from '../domain/relay/ports.ts'
import { nodeArguments } from '../platform/launcher.ts'
import { figures } from './figures.ts'
import { measurePairs, quantileOf, type Reading, spreadOf } from './pairs.ts'
import { cpuMicros, cpuMicrosOfFamily } from './process-cost.ts'
import { end, streamToken } from './relay-program.ts'
import { compare, type Row, single } from './rows.ts'
import { logProgress } from './stack.ts'

const packetBytes = 188
const blockBytes = 1316
/** Of the payload of a packet, whose header the stage changes. Far enough from the timestamps at its beginning. */
const hashedBytes = 64
const [capMbps, phoneMbps] = [48, 6]
const seconds = 8
/** The video begins before the measurement. */
const warmUpSeconds = 2
/** Connections take longer on a busy machine. */
const spareSeconds = 6
const tickMillis = 2

type Mode = 'on' | 'off'

export async function measureStage(transmit: string, rounds: number): Promise<Row[]> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-stage-'))
  try {
    const [large, small] = [await makeVideo(folder, capMbps), await makeVideo(folder, phoneMbps)]
    const costs = await measurePairs({
      what: 'stage, CPU time',
      rounds,
      floor: () => measureCost(transmit, large, 'off'),
      ours: () => measureCost(transmit, large, 'on'),
    })
    const delays: Added[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const delay = await measureDelays(transmit, small)
      if (round > 0) delays.push(delay)
      logProgress(`stage, latency, ${round} of ${rounds}: ${delay.description}`)
    }
    const added = (share: 'p50' | 'p99') => {
      const spread = spreadOf(delays.map((delay) => delay[share]))
      return [spread.median, spread] as const
    }
    return [
      compare(figures.video_stage_cpu, costs, 'relay'),
      compare(figures.video_stage_family_cpu, costs, 'all'),
      single(figures.video_stage_p50, ...added('p50')),
      single(figures.video_stage_p99, ...added('p99')),
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the stage adds to the latency, in milliseconds. */
interface Added {
  readonly p50: number
  readonly p99: number
  readonly description: string
}

/** Real H.264 with noise, which no encoder makes smaller, and AAC. */
async function makeVideo(folder: string, mbps: number): Promise<Buffer> {
  const file = join(folder, `${mbps}.ts`)
  const bitrate = `${Math.floor(mbps * 0.95 * 1_000)}k`
  const inputs = ['testsrc2=size=1280x720:rate=30,noise=alls=50:allf=t', 'sine=frequency=440:sample_rate=48000']
  const video = ['-c:v', 'libx264', '-preset', 'ultrafast', '-tune', 'zerolatency', '-g', '60', '-pix_fmt', 'yuv420p']
  const rate = ['-b:v', bitrate, '-maxrate', bitrate, '-bufsize', bitrate, '-c:a', 'aac', '-b:a', '128k']
  const output = ['-t', String(seconds + warmUpSeconds + spareSeconds), '-f', 'mpegts', file]
  const sources = inputs.flatMap((input) => ['-f', 'lavfi', '-i', input])
  const child = spawn('ffmpeg', ['-nostdin', '-loglevel', 'error', ...sources, ...video, ...rate, ...output], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error(`ffmpeg ended with ${code}`)
  return readFile(file)
}

interface Playing {
  readonly video: Buffer
  readonly mbps: number
  readonly send: (block: Buffer) => void
  readonly isPlayed: () => boolean
  /** Called when the warm-up is over. */
  readonly onStart: () => void | Promise<void>
}

/** Sends a video at its bitrate, until it was played for long enough after the warm-up. */
async function play({ video, mbps, send, isPlayed, onStart }: Playing): Promise<void> {
  const startedAt = performance.now()
  let endsAt = Number.POSITIVE_INFINITY
  for (let sent = 0; performance.now() < endsAt; ) {
    const elapsed = (performance.now() - startedAt) / 1_000
    if (endsAt === Number.POSITIVE_INFINITY && elapsed > warmUpSeconds && isPlayed()) {
      await onStart()
      endsAt = performance.now() + seconds * 1_000
    }
    const due = (elapsed * mbps * 1_000_000) / 8
    if (due > video.length) throw new Error('the video was over before it was played for long enough')
    for (; sent + blockBytes <= due; sent += blockBytes) send(video.subarray(sent, sent + blockBytes))
    await sleep(tickMillis)
  }
}

interface Path {
  readonly relayPid: number
  /** To the publisher. */
  readonly send: (block: Buffer) => void
  readonly onPlayed: (receive: (data: Buffer) => void) => void
  isPlayed(): boolean
  end(): Promise<void>
}

/** A relay with a publisher and a player. */
async function openPath(transmit: string, mode: Mode): Promise<Path> {
  const relay = spawn(process.execPath, [...nodeArguments('bench/stage-relay.ts'), mode, streamToken], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const children: ChildProcess[] = [relay]
  const [line] = await once(relay.stdout, 'data')
  const { publishPort, playPort } = JSON.parse(String(line)) as RelayPorts
  const start = (source: string, target: string) => {
    const options = ['-q', '-loglevel:fatal', '-a:no', '-buffering:1', `-chunk:${blockBytes}`]
    const child = spawn('stdbuf', ['-o0', transmit, ...options, source, target], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    children.unshift(child)
    return child
  }
  const caller = 'mode=caller&tsbpdmode=0&latency=0&streamid='
  const player = start(`srt://127.0.0.1:${playPort}?${caller}play/live/${streamToken}`, 'file://con')
  const publisher = start('file://con', `srt://127.0.0.1:${publishPort}?${caller}publish/live/${streamToken}`)
  let isPlayed = false
  player.stdout.once('data', () => {
    isPlayed = true
  })
  return {
    relayPid: relay.pid ?? 0,
    send: (block) => void publisher.stdin.write(block),
    onPlayed: (receive) => void player.stdout.on('data', receive),
    isPlayed: () => isPlayed,
    async end() {
      for (const child of children) await end(child)
    },
  }
}

async function measureCost(transmit: string, video: Buffer, mode: Mode): Promise<Reading> {
  const path = await openPath(transmit, mode)
  try {
    let [own, family, bytes, startedAt] = [0, 0, 0, 0]
    path.onPlayed((data) => {
      bytes += data.length
    })
    const onStart = async () => {
      ;[own, family] = [await cpuMicros(path.relayPid), await cpuMicrosOfFamily(path.relayPid)]
      startedAt = performance.now()
      bytes = 0
    }
    await play({ video, mbps: capMbps, send: path.send, isPlayed: path.isPlayed, onStart })
    const millis = performance.now() - startedAt
    const megabits = (bytes * 8) / 1_000_000
    // By what was played, since a busy machine may not play all.
    return {
      relay: (await cpuMicros(path.relayPid)) / megabits - own / megabits,
      all: (await cpuMicrosOfFamily(path.relayPid)) / megabits - family / megabits,
      'Mbit/s': megabits / (millis / 1_000),
    }
  } finally {
    await path.end()
  }
}

const keyOf = (data: Buffer, at: number): string =>
  data.toString('latin1', at + packetBytes - hashedBytes, at + packetBytes)

/** When each packet of a stream was seen, by its content. */
function recordTimes() {
  const times = new Map<string, number>()
  let rest = Buffer.alloc(0)
  return {
    times,
    write(data: Buffer) {
      const now = performance.now()
      const whole = rest.length === 0 ? data : Buffer.concat([rest, data])
      let at = 0
      for (; at + packetBytes <= whole.length; at += packetBytes) {
        const key = keyOf(whole, at)
        if (!times.has(key)) times.set(key, now)
      }
      rest = Buffer.from(whole.subarray(at))
    },
  }
}

/** Both relays get each block at the same moment, so that other load on this machine affects both. */
async function measureDelays(transmit: string, video: Buffer): Promise<Added> {
  const paths = { off: await openPath(transmit, 'off'), on: await openPath(transmit, 'on') }
  try {
    const sent = recordTimes()
    const played = { off: recordTimes(), on: recordTimes() }
    for (const mode of ['off', 'on'] as const) paths[mode].onPlayed(played[mode].write)
    let startedAt = 0
    let isOffFirst = false
    const send = (block: Buffer) => {
      sent.write(block)
      isOffFirst = !isOffFirst
      for (const mode of isOffFirst ? (['off', 'on'] as const) : (['on', 'off'] as const)) paths[mode].send(block)
    }
    const isPlayed = () => paths.off.isPlayed() && paths.on.isPlayed()
    const onStart = () => {
      startedAt = performance.now()
    }
    await play({ video, mbps: phoneMbps, send, isPlayed, onStart })
    await sleep(500)
    return compareDelays(
      [...sent.times].filter(([, at]) => at >= startedAt),
      played.off.times,
      played.on.times,
    )
  } finally {
    await Promise.all([paths.off.end(), paths.on.end()])
  }
}

type Times = ReadonlyMap<string, number>

/**
 * The machine delays the packets of both relays at random, which moves the 1st percentile of the differences as far
 * down as the 99th up. The rest of the 99th is what the stage adds.
 */
function compareDelays(sent: readonly (readonly [key: string, at: number])[], off: Times, on: Times): Added {
  const delays = sent.flatMap(([key, at]) => {
    const [offAt, onAt] = [off.get(key), on.get(key)]
    return offAt === undefined || onAt === undefined ? [] : [{ off: offAt - at, on: onAt - at }]
  })
  const differences = delays.map((delay) => delay.on - delay.off)
  const [p1, p50, p99] = [0.01, 0.5, 0.99].map((share) => quantileOf(differences, share)) as [number, number, number]
  const show = (mode: Mode) => {
    const millis = delays.map((delay) => delay[mode])
    return `${mode} p50 ${quantileOf(millis, 0.5).toFixed(2)} ms, p99 ${quantileOf(millis, 0.99).toFixed(2)} ms`
  }
  const description = `${show('off')} | ${show('on')} | differences ${[p1, p50, p99].map((each) => each.toFixed(2)).join(', ')} ms of ${delays.length} packets`
  return { p50, p99: p99 + p1 - p50, description }
}
