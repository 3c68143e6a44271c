/** Callers and encoders that come while a flood of well-formed questions with forged addresses arrives. */
import { randomBytes } from 'node:crypto'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished } from 'vitest'
import { buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import { givenControlPlane, startRelay, statsOf } from '../relay-node/running.ts'
import { handshake, read } from '../support/srt-packets.ts'
import { testInRealTime } from './real-time.ts'
import { startFlood } from './udp-flood.ts'

const callers = 20

/** A socket at an address of this machine. */
async function givenSocket(address: string): Promise<Socket> {
  const socket = createSocket('udp4').bind(0, address)
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket
}

interface Question {
  readonly socket: Socket
  readonly port: number
  readonly host: string
  readonly datagram: Buffer
  /** How often it is repeated. */
  readonly everyMillis: number
  readonly isAnswer: (datagram: Buffer) => boolean
}

/** Resolves with the answer; undefined after ten seconds. */
function ask({ socket, port, host, datagram, everyMillis, isAnswer }: Question): Promise<Buffer | undefined> {
  return new Promise((done) => {
    let questions = 0
    const send = () => {
      questions += 1
      if (questions * everyMillis <= 10_000) socket.send(datagram, port, host)
      else end(undefined)
    }
    const timer = setInterval(send, everyMillis)
    const receive = (answer: Buffer) => {
      if (isAnswer(answer)) end(answer)
    }
    const end = (answer: Buffer | undefined) => {
      clearInterval(timer)
      socket.off('message', receive)
      done(answer)
    }
    socket.on('message', receive)
    send()
  })
}

/** As libsrt asks. Resolves with the milliseconds until the answer. */
async function callAsSrt(address: string, { host, port }: { host: string; port: number }): Promise<number> {
  const socket = await givenSocket(address)
  const startedAt = performance.now()
  const isAnswer = (answer: Buffer) => read(answer).cookie !== 0
  const answer = await ask({ socket, port, host, datagram: handshake({ version: 4 }), everyMillis: 250, isAnswer })
  return answer === undefined ? Number.POSITIVE_INFINITY : performance.now() - startedAt
}

/**
 * As an encoder registers a group and its first link. Resolves with the milliseconds until the link belongs to the
 * group.
 */
async function registerAsEncoder(address: string, { host, port }: { host: string; port: number }): Promise<number> {
  const socket = await givenSocket(address)
  const startedAt = performance.now()
  const question = { socket, port, host, everyMillis: 1_000 }
  const requested = buildRegistration('reg1', randomBytes(256))
  const answer = await ask({
    ...question,
    datagram: requested,
    isAnswer: (reply) => parsePacket(reply)?.kind === 'reg2',
  })
  const isAnswer = (reply: Buffer) => parsePacket(reply)?.kind === 'reg3'
  if (answer === undefined) return Number.POSITIVE_INFINITY
  await ask({ ...question, datagram: buildRegistration('reg2', answer.subarray(2)), isAnswer })
  return performance.now() - startedAt
}

testInRealTime(
  'nine of ten SRT callers get an answer within 2 s, and nine of ten encoders register within 5 s, in a flood from 200 networks',
  async () => {
    const plane = await givenControlPlane()
    const relay = startRelay({ apiUrl: plane.url })
    const { host, publishPort, srtlaPort, statsPort } = await relay.up()
    const flood = startFlood({ host, ports: [publishPort, srtlaPort], networks: 200, perSecond: 20_000 })
    onTestFinished(async () => void (await flood.stop()))
    await flood.untilSent(10_000)

    const times = await Promise.all(
      Array.from({ length: callers }, async (_, n) => {
        const address = `127.2.${n}.1`
        const srt = callAsSrt(address, { host, port: publishPort })
        const srtla = registerAsEncoder(address, { host, port: srtlaPort })
        return { srt: await srt, srtla: await srtla }
      }),
    )
    const within = (protocol: 'srt' | 'srtla', millis: number) => times.filter((time) => time[protocol] < millis).length
    expect(within('srt', 2_000)).toBeGreaterThanOrEqual(0.9 * callers)
    expect(within('srtla', 5_000)).toBeGreaterThanOrEqual(0.9 * callers)
    expect((await statsOf({ host, statsPort })).groups).toEqual([])
  },
)
