/**
 * `srt-live-transmit`, Haivision's own tool, as the SRT engine: one process per connection. That of the publisher
 * writes the stream to its standard output, from where it is copied to the standard input of each player's process. So
 * players stay connected while publishers come and go. The system ends the processes of a relay that is killed: the one
 * of a player without a connection would read the end of its input for ever.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { delimiter } from 'node:path'
import { findProgram } from '../platform/find-program.ts'
import { type Command, endedWithRelay, unbuffered } from './child-command.ts'
import { now } from './clock.ts'
import type { Engine, EngineEnd } from './engine.ts'
import type { Log } from './log.ts'
import type { Peer } from './peer.ts'
import type { Slates } from './slates/slates.ts'
import type { Role } from './stream-access.ts'
import { type Player, StreamFanOut } from './stream-fan-out.ts'
import { Stage } from './transport-stream/stage.ts'

const program = 'srt-live-transmit'
/** A process without a connection ends after this time. */
const connectSecondsMax = 10
const errorTailBytes = 500
/** One publisher, eight players, and those that are ending. */
const processesMax = 32
/** After the end of its connection a process delivers what it has received, and ends. */
const endMillisMax = 1_000

/** In packets and bytes: 48 Mbit/s with a latency of 4 s, which is more than SRT's defaults hold. */
const flowWindow = 32_768
const bufferBytes = 44_000_000

/** Of libsrt. */
const latencyMillisDefault = 120

/** @returns the path of the program, or undefined when it is not installed. */
export const findLiveTransmit = (searchPath: string): string | undefined =>
  findProgram(program, searchPath.split(delimiter))

export const liveTransmitCommand = (path: string, searchPath: string): Command =>
  endedWithRelay(unbuffered([path], searchPath), searchPath)

export interface LiveTransmitOptions {
  /** See {@link liveTransmitCommand}. */
  readonly command: Command
  /** Encrypts both ends. Has no character that an address would encode, since the program does not decode addresses. */
  readonly passphrase?: string | undefined
  /** The least latency of a publisher with several network paths. */
  readonly srtlaLatencyMillisMin?: number | undefined
  /** Without them a gap shows the last picture. */
  readonly slates?: Slates | undefined
  /** Streams pass as they are, to compare with. */
  readonly isStageOff?: boolean | undefined
  readonly log: Log
}

/**
 * The loopback address of a relay's engine. libsrt shares a port that is in use without an error, so the engines of
 * relays on one machine would mix if they had one address and chose the same port.
 */
export function engineAddress(pid: number): string {
  // Other systems have one loopback address only.
  if (process.platform !== 'linux') return '127.0.0.1'
  return `127.${64 + ((pid >> 16) & 0x3f)}.${(pid >> 8) & 0xff}.${pid & 0xff}`
}

export function createLiveTransmitEngine({
  command: [path, ...prefix],
  passphrase,
  srtlaLatencyMillisMin,
  slates,
  isStageOff,
  log,
}: LiveTransmitOptions): Engine {
  const fanOut = new StreamFanOut()
  const stage = new Stage({
    send: (data, newest) => fanOut.write(data, newest),
    flush: (newest) => fanOut.flush(newest),
    newestPlayer: () => fanOut.newest,
    findSlate: (format) => slates?.find(format),
    now,
    isOff: isStageOff,
  })
  const address = engineAddress(process.pid)
  const children = new Set<ChildProcess>()
  /** Also those of processes that have not bound theirs yet. */
  const ports = new Set<number>()

  const start = async (role: Role, protocol: Peer['protocol']) => {
    // Counted by ports, since a process has its port before it starts.
    if (ports.size >= processesMax) throw new Error(`${processesMax} processes of ${program} are running`)
    const port = await findFreePort(address, ports)
    ports.add(port)
    const query = new URLSearchParams({
      mode: 'listener',
      fc: String(flowWindow),
      rcvbuf: String(bufferBytes),
      sndbuf: String(bufferBytes),
      ...(passphrase === undefined ? {} : { passphrase }),
      // Both ends agree on the greater one of theirs, so that less than the default of this end would take it away.
      ...(protocol === 'srtla' && srtlaLatencyMillisMin !== undefined && srtlaLatencyMillisMin > latencyMillisDefault
        ? { latency: String(srtlaLatencyMillisMin) }
        : {}),
    })
    const listener = `srt://${address}:${port}?${query}`
    const addresses = role === 'publish' ? [listener, 'file://con'] : ['file://con', listener]
    const limits = [`-t:${connectSecondsMax}`, '-tm:1']
    // From its standard input the program reads ten packets before it sends the first of them, unless it is limited.
    const reading = role === 'play' ? ['-buffering:1'] : []
    const child = spawn(path, [...prefix, '-q', '-a:no', '-chunk:1316', ...reading, ...limits, ...addresses], {
      stdio: [role === 'play' ? 'pipe' : 'ignore', role === 'publish' ? 'pipe' : 'ignore', 'pipe'],
      env: {},
    })
    child.once('close', () => {
      children.delete(child)
      ports.delete(port)
    })
    children.add(child)
    await once(child, 'spawn')
    return { child, port }
  }

  const open = async (role: Role, protocol: Peer['protocol']): Promise<EngineEnd> => {
    const { child, port } = await start(role, protocol)
    const ended = awaitEnd(child)
    const close = () => void child.kill('SIGKILL')
    const end = { address, port, ended, connected() {}, close }
    if (role === 'publish') {
      const publication = stage.publish()
      child.stdout?.on('data', publication.write)
      child.stdout?.on('end', publication.end)
      return { ...end, received: publication.received, close: () => void setTimeout(close, endMillisMax) }
    }
    const { stdin } = child
    if (!stdin) throw new Error(`${program} has no standard input`)
    const player: Player = {
      input: stdin,
      onTooSlow() {
        log('warn', 'a player was closed because it does not keep up')
        close()
      },
    }
    // The process has ended while data was written to it.
    stdin.on('error', () => {})
    void ended.then(() => fanOut.remove(player))
    return { ...end, connected: () => fanOut.add(player) }
  }

  return {
    name: 'srt-live-transmit',
    open,
    showOnLoss(picture) {
      slates?.want(picture.slate)
      if (picture.format !== null) slates?.prepare(picture.format.video)
      stage.show(picture)
    },
    streamFormat: () => stage.format,
    timeline: () => stage.timeline,
    async close() {
      stage.close()
      slates?.close()
      await Promise.all(
        [...children].map(async (child) => {
          const closed = once(child, 'close')
          child.kill('SIGKILL')
          await closed
        }),
      )
    },
  }
}

/** Resolves with the reason when the process has ended. */
async function awaitEnd(child: ChildProcess): Promise<string> {
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-errorTailBytes)
  })
  const [code, signal] = await once(child, 'close')
  return `${program} ended with ${signal ?? `code ${code}`}${errors === '' ? '' : `: ${errors.trim()}`}`
}

async function findFreePort(address: string, taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const socket = createSocket('udp4')
    socket.bind(0, address)
    await once(socket, 'listening')
    const { port } = socket.address()
    await new Promise<void>((done) => socket.close(done))
    if (!taken.has(port)) return port
  }
}
