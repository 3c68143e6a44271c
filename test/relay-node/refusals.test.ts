/**
 * What a relay answers to callers that it cannot serve, over UDP to its process. Without an engine its owner is
 * refused, too.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { buildRegistration, parsePacket } from '../../relay-node/srtla-packets.ts'
import type { StateFile } from '../../relay-node/state-file.ts'
import { conclusion, extension, handshake, read, streamIdExtension } from '../support/srt-packets.ts'
import { eventually, givenControlPlane, startRelay, streamToken } from './running.ts'
import { ask, givenSocket } from './udp-callers.ts'

const streamId = `publish/live/${streamToken}`
const [half, otherHalf] = [streamId.slice(0, -4), streamId.slice(-4)]
const invisible = {
  'a line feed': '\n',
  'a carriage return and a line feed': '\r\n',
  'a tab': '\t',
  'a no-break space': '\u00a0',
  'a zero-width space': '\u200b',
  'a byte order mark': '\ufeff',
} as const

/** With the type of the rejection. */
const malformed: Readonly<Record<string, (cookie: number) => Buffer>> = {
  ...Object.fromEntries(
    Object.entries({ ...invisible, 'an umlaut': 'ü' }).map(([name, character]) => [
      `a stream id with ${name} in it`,
      (cookie: number) => conclusion({ cookie, streamId: `${half}${character}${otherHalf}` }),
    ]),
  ),
  'a stream id in an unknown encoding': (cookie) =>
    conclusion({ cookie, extensions: [extension(5, Buffer.from(`${half}\u00fcab${otherHalf}`, 'latin1').swap32())] }),
  'a stream id of 513 bytes': (cookie) => conclusion({ cookie, streamId: streamId.padEnd(513, 'x') }),
  'two stream ids': (cookie) => conclusion({ cookie, streamId, extensions: [streamIdExtension(streamId)] }),
  'a cut extension': (cookie) => conclusion({ cookie, streamId }).subarray(0, -4),
  'more bytes than a datagram has': (cookie) =>
    conclusion({ cookie, streamId, extensions: [extension(3, Buffer.alloc(1_500))] }),
}

async function givenRelay() {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  return { plane, relay, state: await relay.up() }
}

/** The rejection of a caller at an address of its own, which has proved its address by a cookie. */
async function call(
  address: string,
  { host, publishPort }: StateFile,
  build: (cookie: number) => Buffer,
): Promise<number> {
  const caller = await givenSocket(address)
  const { cookie } = read(await ask(caller, handshake({ version: 4 }), publishPort, host))
  return read(await ask(caller, build(cookie), publishPort, host)).type - 1000
}

const callAll = async (
  network: number,
  state: StateFile,
  calls: Readonly<Record<string, (cookie: number) => Buffer>>,
) =>
  Object.fromEntries(
    await Promise.all(
      Object.entries(calls).map(async ([name, build], n) => [name, await call(`127.4.${network + n}.1`, state, build)]),
    ),
  )

test('a malformed handshake of a caller with a valid cookie is refused as one, and reported without its address', async () => {
  const { plane, relay, state } = await givenRelay()
  const answers = callAll(0, state, malformed)
  const old = call('127.4.100.1', state, (cookie) => handshake({ type: 0xffff_ffff, version: 4, cookie }))

  expect(await answers).toEqual(Object.fromEntries(Object.keys(malformed).map((name) => [name, 1400])))
  expect(await old).toBe(1505)
  const refused = { bad_request: Object.keys(malformed).length, version: 1 }
  const reports = await eventually(
    () => plane.reports.map(({ body }) => body.stats),
    (all) => Object.keys(all.at(-1)?.refused ?? {}).length === 2,
  )
  expect(reports.at(-1)?.refused).toEqual(refused)
  expect(JSON.stringify(reports)).not.toContain('127.4.')
  for (const reason of Object.keys(refused))
    expect(relay.output()).toMatch(new RegExp(`"reason":"${reason}".*"callers were refused"`))
})

test('a caller in rendezvous mode is refused at once', async () => {
  const { state } = await givenRelay()
  const caller = await givenSocket()
  const question = handshake({ type: 0 })
  const answer = await ask(caller, question, state.publishPort, state.host)
  expect(read(answer)).toMatchObject({ type: 2405, destination: 77 })
  expect(answer).toHaveLength(question.length)
})

test('what is invisible around a stream id is ignored', async () => {
  const { state } = await givenRelay()
  const calls = Object.fromEntries(
    Object.entries(invisible).flatMap(([name, character]) => [
      [`${name} before`, (cookie: number) => conclusion({ cookie, streamId: `${character}${streamId}` })],
      [`${name} after`, (cookie: number) => conclusion({ cookie, streamId: `${streamId}${character}${character}` })],
    ]),
  )
  // The owner, at a relay without an engine.
  expect(await callAll(0, state, calls)).toEqual(Object.fromEntries(Object.keys(calls).map((name) => [name, 1503])))
})

test.each(['publishPort', 'playPort'] as const)('an encoder that registers at the %s is refused', async (port) => {
  const { plane, state } = await givenRelay()
  for (const kind of ['reg1', 'reg2'] as const) {
    const encoder = await givenSocket()
    const answer = await ask(encoder, buildRegistration(kind, randomBytes(256)), state[port], state.host)
    expect(parsePacket(answer)).toEqual({ kind: 'reg_err' })
    expect(answer).toHaveLength(2)
  }
  await eventually(
    () => plane.reports.at(-1)?.body.stats.refused,
    (refused) => refused?.srtla_at_srt_port === 2,
  )
})

test('a caller of SRT at the SRTLA port gets no answer, and the log names the reason', async () => {
  const { plane, relay, state } = await givenRelay()
  const caller = await givenSocket()
  const answers: Buffer[] = []
  caller.on('message', (answer) => answers.push(answer))
  caller.send(handshake({ version: 4 }), state.srtlaPort, state.host)
  // Its answer comes after one to the handshake would.
  caller.send(buildRegistration('reg1', randomBytes(256)), state.srtlaPort, state.host)
  await once(caller, 'message')

  expect(answers.map((answer) => parsePacket(answer)?.kind)).toEqual(['reg2'])
  await eventually(
    () => plane.reports.at(-1)?.body.stats.refused,
    (refused) => refused?.srt_at_srtla_port === 1,
  )
  expect(relay.output()).toMatch(/"reason":"srt_at_srtla_port".*"callers were refused"/)
})
