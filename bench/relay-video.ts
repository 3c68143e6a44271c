/**
 * The CPU time of a relay that forwards video at its cap to one player, against a program that sends datagrams back.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { listProcesses } from '../platform/processes.ts'
import { engineAddress } from '../relay-node/live-transmit-engine.ts'
import { startControlPlane } from '../test/relay-node/control-plane.ts'
import { figures } from './figures.ts'
import { measurePairs, type Reading } from './pairs.ts'
import { end, startRelay, streamToken } from './relay-program.ts'
import { compare, type Row, single } from './rows.ts'
import { logProgress, waitUntil } from './stack.ts'

const mbps = 48
const seconds = 10
const payloadBytes = 1316
const packetsPerSecond = (mbps * 1_000_000) / 8 / payloadBytes

export async function measureVideo(transmit: string, rounds: number): Promise<Row[]> {
  const pairs = await measurePairs({
    what: 'video',
    rounds,
    floor: measureEcho,
    ours: () => measureRelay(transmit),
  })
  const cores = Math.max(...pairs.map(({ ours }) => ours.cores ?? Number.NaN))
  return [compare(figures.video_packets, pairs, 'packets'), single(figures.video_cpu, cores * 100)]
}

/** Calls `send` at the rate of the cap. @returns the number of calls. */
async function sendAtCap(send: () => void): Promise<number> {
  const startedAt = performance.now()
  let sent = 0
  while (performance.now() - startedAt < seconds * 1000) {
    const due = ((performance.now() - startedAt) / 1000) * packetsPerSecond
    for (; sent < due; sent += 1) send()
    await sleep(2)
  }
  return sent
}

async function measureEcho(): Promise<Reading> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'bench/udp-echo.ts'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(child.stdout, 'data')
  const socket = createSocket('udp4')
  socket.connect(Number(line), '127.0.0.1')
  await once(socket, 'connect')
  const datagram = Buffer.alloc(payloadBytes + 16)
  const { pid = 0 } = child
  const before = await cpuSeconds([pid])
  const packets = await sendAtCap(() => socket.send(datagram))
  const used = (await cpuSeconds([pid])) - before
  socket.close()
  await end(child)
  return { packets: packets / used, cores: used / seconds }
}

async function measureRelay(transmit: string): Promise<Reading> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-video-'))
  const plane = await startControlPlane()
  const children: ChildProcess[] = []
  try {
    const { child, state } = await startRelay(folder, plane.url)
    children.push(child)
    const start = (source: string, target: string) => {
      const options = ['-q', '-a:no', `-chunk:${payloadBytes}`]
      const started = spawn(transmit, [...options, source, target], { stdio: ['pipe', 'pipe', 'inherit'] })
      children.unshift(started)
      return started
    }
    const caller = 'mode=caller&latency=500&streamid='
    const player = start(`srt://127.0.0.1:${state.playPort}?${caller}play/live/${streamToken}`, 'file://con')
    const publisher = start('file://con', `srt://127.0.0.1:${state.publishPort}?${caller}publish/live/${streamToken}`)
    return await measureStream(state.pid, publisher.stdin, player.stdout)
  } finally {
    for (const child of children) await end(child)
    await plane.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function measureStream(relayPid: number, published: Writable, playing: Readable): Promise<Reading> {
  let played = 0
  playing.on('data', (chunk: Buffer) => {
    played += chunk.length
  })
  const block = Buffer.alloc(payloadBytes)
  const warmUp = setInterval(() => published.write(block), 10)
  await waitUntil('video is played', async () => played > 0).finally(() => clearInterval(warmUp))
  const engines = await listProcesses((command) => command.includes(`srt://${engineAddress(relayPid)}:`))
  const pids = [relayPid, ...engines.map(({ pid }) => pid)]
  const [usedBefore, playedBefore] = [await cpuSeconds(pids), played]
  const packets = await sendAtCap(() => published.write(block))
  await sleep(1_500)
  const used = (await cpuSeconds(pids)) - usedBefore
  const playedPackets = Math.round((played - playedBefore) / payloadBytes)
  logProgress(`video: ${packets} packets sent, ${playedPackets} played, ${used.toFixed(2)} s of CPU time`)
  return { packets: packets / used, cores: used / seconds }
}

/**
 * User and system time of processes that run, from Linux's process table, in clock ticks of a hundredth of a second.
 */
async function cpuSeconds(pids: readonly number[]): Promise<number> {
  const times = pids.map(async (pid) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  })
  return (await Promise.all(times)).reduce((sum, time) => sum + time, 0)
}
