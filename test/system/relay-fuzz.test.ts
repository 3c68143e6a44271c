/**
 * Forged and damaged datagrams at all ports of three relays, two of which have a stream. `npm run soak -- fuzz` takes
 * longer, and RELAY_FUZZ_SEED repeats the datagrams of another run.
 *
 * Some come from the addresses of encoders and players. A sender that does not know the SRT socket ids of their
 * connections, which only hosts on the path see, can neither end nor change a stream. A sender that knows them can,
 * since SRT authenticates no shutdown. So callers use the ids of their own connections only.
 */
import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { expect, onTestFailed, onTestFinished, test } from 'vitest'
import { buildRegistration } from '../../relay-node/srtla-packets.ts'
import type { StateFile } from '../../relay-node/state-file.ts'
import { endOf, givenControlPlane, startRelay, statsOf, streamToken } from '../relay-node/running.ts'
import { createRandom } from '../support/random.ts'
import { openRawSockets } from '../support/raw-datagrams.ts'
import { handshake } from '../support/srt-packets.ts'
import { SrtlaSender } from '../support/srtla-sender.ts'
import { createDatagramFuzz, type FuzzedNetwork, type LiveSource, type Source } from './datagram-fuzz.ts'
import { callKinds, FuzzCallers } from './fuzz-callers.ts'
import { expectWholeStream, StreamSink, StreamSource } from './srt-stream.ts'
import { startRouter } from './udp-router.ts'

/** Instead of a number of datagrams. */
const seconds = Number(process.env.RELAY_FUZZ_SECONDS ?? 0)
/** The short form repeats the same datagrams, and the long one looks for others. */
const seed = Number(process.env.RELAY_FUZZ_SEED ?? (seconds > 0 ? randomInt(1_000_000) : 7))
const datagramsMin = 30_000
const callsMin = 30
/** Together far below what the kernel holds back for a port. */
const batch = 300
const concurrentCallers = 5
const megabytesMax = 80
const progressMillis = 5_000

/** On each of both ways. */
const options = 'latency=1000'
const kbps = 1_000

const print = (text: string) => void process.stderr.write(`[fuzz] ${text}\n`)

const urlOf = (host: string, port: number, role: 'publish' | 'play') =>
  `srt://${host}:${port}?mode=caller&streamid=${role}/live/${streamToken}&${options}`

interface Relay {
  readonly relay: ReturnType<typeof startRelay>
  readonly state: StateFile
}

interface Stream {
  readonly source: StreamSource
  readonly sink: StreamSink
}

async function givenRelay(): Promise<Relay> {
  const plane = await givenControlPlane()
  const relay = startRelay({
    apiUrl: plane.url,
    variables: { PATH: process.env.PATH, SVC_RELAY_STATS_ADDRESSES: 'full' },
  })
  return { relay, state: await relay.up() }
}

/** A relay with an encoder and a player. */
async function givenLiveRelay(protocol: 'SRT' | 'SRTLA') {
  const { relay, state } = await givenRelay()
  const router = await startRouter(state.host, state.playPort)
  const sink = new StreamSink(urlOf('127.0.0.1', router.port, 'play'))
  const source = new StreamSource(await publishUrlOf(protocol, state), kbps)
  await sink.untilReceived(100_000)
  const live = async () => (await statsOf(state)).groups[0]?.connections.map(({ addr }) => addr).toSorted() ?? []
  const encoders = await live()
  expect(encoders).toHaveLength(protocol === 'SRT' ? 1 : 2)
  const { host, publishPort, srtlaPort, playPort } = state
  const publishTarget = { host, targetPort: protocol === 'SRT' ? publishPort : srtlaPort }
  const sources = [
    ...encoders.map((addr) => ({ ...readSource(addr), ...publishTarget })),
    { ...router.source, host, targetPort: playPort },
  ]
  return { relay, state, sink, source, live, sources }
}

async function publishUrlOf(protocol: 'SRT' | 'SRTLA', { host, publishPort, srtlaPort }: StateFile): Promise<string> {
  if (protocol === 'SRT') return urlOf(host, publishPort, 'publish')
  const sender = await SrtlaSender.start({ host, srtlaPort, links: [{}, {}] })
  onTestFinished(() => sender.close())
  return urlOf('127.0.0.1', sender.port, 'publish')
}

function readSource(text: string): Source {
  const [address = '', port] = text.split(':')
  return { address, port: Number(port) }
}

/**
 * Resolves when a new caller has an answer from each port of a relay. It comes behind those that the port received
 * before.
 * @param turn a number of the caller, whose network has not asked before.
 */
async function untilHandled({ host, srtlaPort, publishPort, playPort }: StateFile, turn: number): Promise<void> {
  await Promise.all(
    [srtlaPort, publishPort, playPort].map(async (port) => {
      const socket = createSocket('udp4').bind(0, `127.${1 + ((turn >> 8) % 250)}.${turn & 0xff}.200`)
      await once(socket, 'listening')
      const question = port === srtlaPort ? buildRegistration('reg1', Buffer.alloc(256)) : handshake({ version: 4 })
      const ask = () => socket.send(question, port, host)
      ask()
      // As others had the answers of this moment.
      const again = setInterval(ask, 50)
      await once(socket, 'message')
      clearInterval(again)
      socket.close()
    }),
  )
}

/** Not a number for a process that has ended. */
const residentMegabytes = async ({ pid }: StateFile): Promise<number> =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''))?.[1]) / 1024

test('a seed gives the same datagrams again, and another one gives others', () => {
  const relay = { host: '127.0.0.1', srtlaPort: 5000, publishPort: 4001, playPort: 4000 }
  const network: FuzzedNetwork = {
    relays: [relay],
    live: [{ address: '127.0.0.1', port: 7, host: '127.0.0.1', targetPort: 5000 }],
  }
  const sequenceOf = (chosen: number) => Array.from({ length: 50 }, createDatagramFuzz(chosen, network).next)
  expect(sequenceOf(1)).toEqual(sequenceOf(1))
  expect(sequenceOf(2)).not.toEqual(sequenceOf(1))
})

test(
  'forged and damaged datagrams at every port end no relay and no stream, and new callers are served',
  async () => {
    onTestFailed(() => print(`RELAY_FUZZ_SEED=${seed} repeats the datagrams`))
    const [idle, ...live] = await Promise.all([givenRelay(), givenLiveRelay('SRT'), givenLiveRelay('SRTLA')])
    const relays: Relay[] = [...live, idle]
    const states = relays.map(({ state }) => state)
    const targets = states as [StateFile, ...StateFile[]]
    const encodersBefore = await Promise.all(live.map((relay) => relay.live()))
    const memoryBefore = await Promise.all(states.map(residentMegabytes))
    const raw = await openRawSockets({ isCounting: false })
    onTestFinished(() => raw.close())
    const network = {
      relays: targets,
      live: live.flatMap(({ sources }) => sources) as [LiveSource, ...LiveSource[]],
    }
    const fuzz = createDatagramFuzz(seed, network)
    // Other sequences, since their calls depend on the answers.
    const links = createDatagramFuzz(seed + 1, network)
    const callers = new FuzzCallers(seed + 2, (...forged) => raw.send([links.forge(...forged)]))
    const startedAt = performance.now()
    let sent = 0
    const isOver = (count: number, countMin: number) =>
      seconds > 0 ? performance.now() - startedAt > seconds * 1_000 : count >= countMin
    const ended = relays.map(async ({ relay }) => {
      const code = await endOf(relay.child)
      throw new Error(`a relay has ended with code ${code} after ${sent} datagrams`)
    })
    // Their ends after the test are no failures.
    for (const end of ended) end.catch(() => {})
    const whole = (streams: readonly Stream[]) =>
      Promise.race([
        Promise.all(
          streams.map(async ({ source, sink }) => {
            await sink.untilReceived(50_000)
            await expectWholeStream(source, sink)
          }),
        ),
        ...ended,
      ])

    const forge = async () => {
      for (let turn = 0; !isOver(sent, datagramsMin); turn += 1) {
        await raw.send(Array.from({ length: batch }, fuzz.next))
        sent += batch
        await Promise.all(states.map((state) => untilHandled(state, turn)))
      }
    }
    const random = createRandom(seed + 3)
    let calls = 0
    const converse = async () => {
      while (!isOver(calls, callsMin)) {
        const kind = callKinds[calls % callKinds.length] ?? 'play'
        calls += 1
        // A publisher is refused by a relay with a stream.
        const isAdmitted = kind !== 'play' && random.chance(0.6)
        await callers.converse(kind, isAdmitted ? idle.state : random.pick(targets))
      }
    }
    const memory = async () => (await Promise.all(states.map(residentMegabytes))).map(Math.round).join(', ')
    const progress = setInterval(async () => {
      const bytes = live.map(({ sink }) => Math.round(sink.receivedBytes / 1e6)).join(' and ')
      if (seconds > 0) print(`${sent} datagrams, ${calls} calls, relays ${await memory()} MB, streams ${bytes} MB`)
    }, progressMillis)
    onTestFinished(() => clearInterval(progress))
    await Promise.race([Promise.all([forge(), ...Array.from({ length: concurrentCallers }, converse)]), ...ended])

    await whole(live)
    expect(await Promise.all(live.map((relay) => relay.live()))).toEqual(encodersBefore)
    for (const { relay, state } of relays) {
      expect(await relay.up()).toEqual(state)
      const log = relay
        .output()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
      expect(log.filter(({ level }) => level === 'error')).toEqual([])
    }
    for (const { relay } of live) expect(relay.output().match(/publish connection (admitted|closed)/g)).toHaveLength(1)
    const memoryAfter = await Promise.all(states.map(residentMegabytes))
    for (const [n, before] of memoryBefore.entries()) expect((memoryAfter[n] ?? 0) - before).toBeLessThan(megabytesMax)
    // Damaged packets of admitted callers have passed the gate.
    for (const count of Object.values(callers.counts)) expect(count).toBeGreaterThan(0)

    const players = live.map(({ state, source }) => ({ source, sink: playOf(state) }))
    const publisher = {
      sink: playOf(idle.state),
      source: new StreamSource(await publishUrlOf('SRT', idle.state), kbps),
    }
    await whole([...players, publisher])
    const { publishers, players: admitted, groups, cookies } = callers.counts
    const admissions = `${cookies} calls with a cookie, ${groups} groups, ${publishers} publishers, ${admitted} players`
    print(`ok: seed ${seed}, ${sent} forged datagrams, ${admissions}, relays ${await memory()} MB, all streams whole`)
  },
  180_000 + seconds * 1_000,
)

const playOf = ({ host, playPort }: StateFile) => new StreamSink(urlOf(host, playPort, 'play'))
