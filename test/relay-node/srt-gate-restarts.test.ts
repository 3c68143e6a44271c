/** What of a former socket of an encoder arrives late, at a gate that has its present one. */
import { expect, test } from 'vitest'
import type { SrtGate } from '../../relay-node/srt-gate.ts'
import { conclusion, data, handshake, handshakeTypes, read } from '../support/srt-packets.ts'
import { type Caller, createCaller, engineSocketId, givenGate, publish } from './gate-callers.ts'
import { eventually } from './running.ts'

const caller = () => createCaller('192.0.2.1:5000')

/** Returns the conclusion of the socket. */
function begin(gate: SrtGate, { peer, last }: Caller, socketId: number, now = 1_000): Buffer {
  gate.receive('publish', handshake({ socketId, version: 4 }), peer, now)
  return conclusion({ socketId, cookie: read(last()).cookie, streamId: publish })
}

/** The socket of the publisher; undefined without one. */
const publisherOf = (gate: SrtGate) => gate.publisher?.peerSocketId

async function conclude(gate: SrtGate, { peer, received }: Caller, datagram: Buffer, now = 1_000): Promise<void> {
  gate.receive('publish', datagram, peer, now)
  const { socketId } = read(datagram)
  const isAgreed = (answer: Buffer) =>
    answer.length >= 64 && read(answer).type === handshakeTypes.conclusion && read(answer).destination === socketId
  await eventually(
    () => received.some(isAgreed),
    (agreed) => agreed,
  )
}

const sendData = (gate: SrtGate, { peer }: Caller, sequenceNumber: number) =>
  gate.receive('publish', data(sequenceNumber, { destination: engineSocketId }), peer, 1_100)

/** A gate that has the second socket of an encoder, which has sent data, and the conclusion of the first one. */
async function givenRestart() {
  const { gate, opened } = await givenGate()
  const encoder = caller()
  const former = begin(gate, encoder, 77)
  await conclude(gate, encoder, former)
  sendData(gate, encoder, 1)
  const present = begin(gate, encoder, 78)
  await conclude(gate, encoder, present)
  sendData(gate, encoder, 2)
  return { gate, opened, encoder, former, present }
}

test('an encoder that restarts replaces its connection, and what is repeated of its former socket does not', async () => {
  const { gate, opened, encoder, former } = await givenRestart()
  expect(publisherOf(gate)).toBe(78)

  gate.receive('publish', former, encoder.peer, 1_200)
  expect(publisherOf(gate)).toBe(78)
  // As when the network repeats all that the socket has sent.
  begin(gate, encoder, 77)
  gate.receive('publish', former, encoder.peer, 1_200)

  expect(publisherOf(gate)).toBe(78)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false])
})

test('a socket that never concluded before does not replace a later one that has sent data', async () => {
  const { gate, opened } = await givenGate()
  const encoder = caller()
  const delayed = begin(gate, encoder, 76)
  await conclude(gate, encoder, begin(gate, encoder, 77))
  sendData(gate, encoder, 1)

  begin(gate, encoder, 76)
  gate.receive('publish', delayed, encoder.peer, 1_200)

  expect(publisherOf(gate)).toBe(77)
  expect(opened).toHaveLength(1)
})

test('a socket that began its handshake earlier replaces one that has sent nothing', async () => {
  const { gate } = await givenGate()
  const encoder = caller()
  const [present, abandoned] = [begin(gate, encoder, 78), begin(gate, encoder, 77)]
  await conclude(gate, encoder, abandoned)
  await conclude(gate, encoder, present)
  expect(publisherOf(gate)).toBe(78)
})

test('repeated conclusions of ended connections open none, and their sockets can begin again', async () => {
  const { gate, encoder, former, present } = await givenRestart()
  gate.sweep(7_000)
  expect(gate.publisher).toBeUndefined()

  // As long as their cookies are valid for other sockets.
  for (const now of [7_100, 59_000, 100_000, 119_000]) {
    gate.sweep(now)
    for (const datagram of [former, present]) {
      gate.receive('publish', datagram, encoder.peer, now)
      expect(gate.publisher).toBeUndefined()
    }
  }

  await conclude(gate, encoder, begin(gate, encoder, 78, 121_000), 121_000)
  expect(publisherOf(gate)).toBe(78)
})

test('a handshake that begins before the connection of its peer ends, or is forgotten, is completed after it', async () => {
  const { gate, encoder } = await givenRestart()
  const late = begin(gate, encoder, 79, 5_900)
  gate.sweep(6_200)
  await conclude(gate, encoder, late, 6_200)
  expect(publisherOf(gate)).toBe(79)

  gate.sweep(100_000)
  const later = begin(gate, encoder, 80, 126_100)
  gate.sweep(126_300)
  await conclude(gate, encoder, later, 126_300)
  expect(publisherOf(gate)).toBe(80)
})

test('data for the socket of a former connection neither counts nor reaches the engine', async () => {
  const { gate, opened, encoder } = await givenRestart()
  gate.receive('publish', data(3, { destination: engineSocketId + 1 }), encoder.peer, 3_000)
  gate.receive('publish', data(4).subarray(0, 12), encoder.peer, 3_000)
  sendData(gate, encoder, 5)

  await eventually(
    () => opened[1]?.received.map((packet) => packet.readUInt32BE(0)),
    (numbers) => numbers?.includes(5) === true,
  )
  expect(opened[1]?.received.map((packet) => packet.readUInt32BE(0))).toEqual([2, 5])
  expect(gate.publisher?.counters).toMatchObject({ dataPackets: 2, lastAt: 1_100 })
})
