/**
 * What a stream over three links costs, and what of it arrives: through a relay, and through a plain SRT listener
 * behind a forwarder, which is the floor.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { startControlPlane } from '../test/relay-node/control-plane.ts'
import { createRandom } from '../test/support/random.ts'
import { SrtlaSender } from '../test/support/srtla-sender.ts'
import { figuresOfNetwork, type Network, networks } from './bonding-networks.ts'
import { BlockSink, BlockSource, blockBytes, countLinks, type LinkFigures, untilRegistered } from './bonding-stream.ts'
import { formatNumber } from './pairs.ts'
import { end, startRelay, streamToken } from './relay-program.ts'
import { type Row, single } from './rows.ts'
import { logProgress, waitUntil } from './stack.ts'
import { formatCells } from './table.ts'

const seconds = 20
/** Until the player has what was sent last. */
const drainMillis = 1_500
/** Longer stalls of this process lose what a network would not. */
const stallMillisMax = 120
const attemptsMax = 4

export interface Reading extends LinkFigures {
  /** Blocks that did not reach the player. */
  readonly missing: number
  readonly written: number
  /** The mean at the encoder, in milliseconds. */
  readonly rttMillis: number
}

interface Target {
  readonly srtlaPort: number
  readonly player: Readable
  stop(): Promise<void>
}

type StartTarget = (network: Network) => Promise<Target>

/** @param names of networks; all when empty. */
export async function measureBonding(transmit: string, names: readonly string[]): Promise<Row[]> {
  takePriority()
  const rows: Row[] = []
  const cells: string[][] = [tableHead]
  for (const network of networks.filter(({ name }) => names.length === 0 || names.includes(name))) {
    const floor = await measureUndisturbed(transmit, network, 'floor', startFloor(transmit))
    const ours = await measureUndisturbed(transmit, network, 'ours', startOurs(transmit))
    rows.push(...rowsOf(network, floor, ours))
    cells.push(cellsOf(network.what, 'floor', floor), cellsOf(network.what, 'ours', ours))
  }
  console.log(`${formatCells(cells)}\n`)
  return rows
}

/** Other programs of this machine must not delay what stands for a network. */
function takePriority(): void {
  const { status } = spawnSync('chrt', ['--all-tasks', '--rr', '--pid', '5', String(process.pid)], { stdio: 'ignore' })
  logProgress(status === 0 ? 'bonding: with real-time priority' : 'bonding: without real-time priority')
}

async function measureUndisturbed(
  transmit: string,
  network: Network,
  side: string,
  start: StartTarget,
): Promise<Reading> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const { reading, stallMillis } = await measureOnce(transmit, network, start)
    logProgress(`bonding, ${network.what}, ${side}: ${cellsOf('', '', reading).slice(2).join(', ')}`)
    if (stallMillis <= stallMillisMax) return reading
    logProgress(`bonding: void, since this process stalled for ${Math.round(stallMillis)} ms`)
  }
  throw new Error(`this machine is too busy: each of ${attemptsMax} runs of "${network.what}" was void`)
}

async function measureOnce(transmit: string, network: Network, start: StartTarget) {
  const folder = await mkdtemp(join(tmpdir(), 'bench-bonding-'))
  const target = await start(network)
  const { links } = network
  const sender = await SrtlaSender.start({
    host: '127.0.0.1',
    srtlaPort: target.srtlaPort,
    links,
    random: createRandom(1).next,
  })
  const statsFile = join(folder, 'encoder.json')
  const encoder = startEncoder(transmit, sender.port, network, statsFile)
  try {
    await untilRegistered(sender)
    const sink = new BlockSink(target.player)
    const source = new BlockSource(encoder.stdin, network.kbps)
    await waitUntil('the player has blocks', async () => sink.received.size > 0, 20)
    const read = countLinks(sender)
    const delays = monitorEventLoopDelay({ resolution: 5 })
    delays.enable()
    const during = network.during?.(sender)
    await sleep(seconds * 1_000)
    await during
    const { written } = source
    // The stream goes on, since programs hold back what is less than their buffers.
    await sleep(network.latencyMillis + drainMillis)
    source.stop()
    delays.disable()
    const rttMillis = meanRtt(await readFile(statsFile, 'utf8'))
    return {
      reading: { ...read(), missing: sink.missing(written), written, rttMillis },
      stallMillis: delays.max / 1e6,
    }
  } finally {
    await end(encoder)
    sender.close()
    await target.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

function startEncoder(transmit: string, port: number, network: Network, statsFile: string) {
  const limit = `&maxbw=0&inputbw=${Math.round((network.kbps * 1_000) / 8)}&oheadbw=20`
  const options = `mode=caller&latency=${network.latencyMillis}&streamid=publish/live/${streamToken}`
  const url = `srt://127.0.0.1:${port}?${options}${network.isLimited ? limit : ''}`
  const statistics = ['-s:200', '-pf:json', `-statsout:${statsFile}`]
  return spawn(transmit, ['-q', '-a:no', `-chunk:${blockBytes}`, ...statistics, 'file://con', url], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
}

/** @param lines of srt-live-transmit, one reading each. */
function meanRtt(lines: string): number {
  const values = [...lines.matchAll(/"rtt":\s*([\d.]+)/g)].map(([, rtt]) => Number(rtt))
  return values.reduce((sum, rtt) => sum + rtt, 0) / values.length
}

const startFloor =
  (transmit: string): StartTarget =>
  async (network) => {
    const port = await findFreePort()
    const url = `srt://127.0.0.1:${port}?mode=listener&latency=${network.latencyMillis}`
    const listener = spawn(transmit, ['-q', '-a:no', `-chunk:${blockBytes}`, url, 'file://con'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const forwarder = spawn(process.execPath, ['--import', 'tsx', 'bench/srtla-forwarder.ts', String(port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(forwarder.stdout, 'data')
    return {
      srtlaPort: Number(line),
      player: listener.stdout,
      stop: () => endAll([forwarder, listener]),
    }
  }

const startOurs =
  (transmit: string): StartTarget =>
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'bench-bonding-relay-'))
    const plane = await startControlPlane()
    const { child, state } = await startRelay(folder, plane.url)
    const url = `srt://127.0.0.1:${state.playPort}?mode=caller&latency=200&streamid=play/live/${streamToken}`
    const player = spawn(transmit, ['-q', '-a:no', `-chunk:${blockBytes}`, url, 'file://con'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return {
      srtlaPort: state.srtlaPort,
      player: player.stdout,
      async stop() {
        await endAll([player, child])
        await plane.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  }

async function endAll(children: readonly ChildProcess[]): Promise<void> {
  for (const child of children) await end(child)
}

async function findFreePort(): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  await new Promise<void>((done) => socket.close(done))
  return port
}

const percentOf = (part: number, whole: number): number => (part / whole) * 100
const packetsOf = ({ payloadBytes }: Reading): number => payloadBytes / blockBytes
const needlessOf = (reading: Reading): number => percentOf(reading.needless, packetsOf(reading))
const costOf = ({ linkBytes, payloadBytes }: Reading): number => linkBytes / payloadBytes

function rowsOf(network: Network, floor: Reading, ours: Reading): Row[] {
  const { needless, share, missing, cost } = figuresOfNetwork(network, {
    needless: needlessOf(floor),
    missing: floor.missing,
  })
  return [
    single(needless, needlessOf(ours), undefined, needlessOf(floor)),
    single(share, ours.sharePct, undefined, floor.sharePct),
    single(missing, ours.missing, undefined, floor.missing),
    single(cost, costOf(ours), undefined, costOf(floor)),
  ]
}

const tableHead = [
  'network',
  'side',
  'packets',
  'repeats',
  'needless',
  'loss reports',
  'fastest link',
  'link bytes ÷ payload',
  'missing',
  'RTT',
]

const cellsOf = (what: string, side: string, reading: Reading): string[] => [
  what,
  side,
  String(Math.round(packetsOf(reading))),
  `${formatNumber(percentOf(reading.repeats, packetsOf(reading)))} %`,
  `${formatNumber(needlessOf(reading))} %`,
  String(reading.lossReports),
  `${formatNumber(reading.sharePct)} %`,
  costOf(reading).toFixed(3),
  `${reading.missing} of ${reading.written}`,
  `${formatNumber(reading.rttMillis)} ms`,
]
