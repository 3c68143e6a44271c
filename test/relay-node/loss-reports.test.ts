/** The loss reports of the engine on their way to an encoder, through the gate. */
import { expect, test } from 'vitest'
import type { Bond } from '../../relay-node/peer.ts'
import { acknowledgement, data, lossReport } from '../support/srt-packets.ts'
import { admit, createCaller, engineSocketId, givenGate } from './gate-callers.ts'
import { eventually } from './running.ts'

const lossReportsIn = (received: readonly Buffer[]) => received.filter((packet) => parseType(packet) === 0x8003)
const parseType = (packet: Buffer) => packet.readUInt16BE(0)

/** A publisher whose packets 1 and 4 have arrived. */
async function givenPublisher(bond?: Bond) {
  const { gate, opened } = await givenGate()
  const publisher = createCaller('192.0.2.1:5000', bond)
  await admit(gate, publisher)
  const send = (number: number, isRetransmitted = false) =>
    gate.receive('publish', data(number, { destination: engineSocketId, isRetransmitted }), publisher.peer, 2_000)
  send(1)
  send(4)
  const [engine] = opened
  if (engine === undefined) throw new Error('the gate has opened no engine')
  return { gate, publisher, engine, send }
}

/** A bond that records what is sent over all of its paths. */
function createBond(paths: number) {
  const overAll: Buffer[] = []
  const bond: Bond = {
    pathCount: () => paths,
    sendOverAll: (datagram) => void overAll.push(datagram),
    receiveData: () => {},
    acknowledge: () => {},
  }
  return { bond, overAll }
}

/** Waits until the publisher has received what the engine sent before. */
async function untilForwarded({ engine, publisher }: Awaited<ReturnType<typeof givenPublisher>>): Promise<void> {
  const marker = acknowledgement(1, 1_000)
  engine.send(marker)
  await eventually(
    () => publisher.received.some((packet) => packet.equals(marker)),
    (isThere) => isThere,
  )
}

test.each([
  ['a caller of the publish port', undefined],
  ['a bonded encoder with one link', createBond(1).bond],
])('%s gets the reports unchanged, at once', async (_, bond) => {
  const given = await givenPublisher(bond)
  const report = lossReport([2, 3])
  given.engine.send(report)
  await untilForwarded(given)
  expect(lossReportsIn(given.publisher.received)).toEqual([report])
})

test('a malformed report passes unchanged', async () => {
  const given = await givenPublisher(createBond(2).bond)
  const malformed = lossReport([3, 2])
  given.engine.send(malformed)
  await untilForwarded(given)
  expect(lossReportsIn(given.publisher.received)).toEqual([malformed])
})

test('an encoder with two links hears of a lost packet over one link first, then over all', async () => {
  const { bond, overAll } = createBond(2)
  const { engine, publisher, send } = await givenPublisher(bond)
  engine.send(lossReport([2, 3]))
  send(2)
  await eventually(
    () => overAll.length,
    (count) => count > 0,
  )
  expect(lossReportsIn(publisher.received)).toEqual([lossReport(3)])
  expect(overAll[0]).toEqual(lossReport(3))
})

test('what was done about lost packets is counted', async () => {
  const { bond } = createBond(2)
  const { gate, engine, send } = await givenPublisher(bond)
  engine.send(lossReport([2, 3]))
  await eventually(
    () => gate.publisher?.bonding?.reported,
    (count) => count === 2,
  )
  send(2, true)
  expect(gate.publisher?.bonding).toMatchObject({ held: 2, reported: 2, saved: 0 })
})
