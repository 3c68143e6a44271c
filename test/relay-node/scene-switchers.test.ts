/**
 * What scene switchers require of `GET /stats?publisher=…`: with one field missing or mistyped a stream counts as
 * offline.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { admitPlainToken } from '../../relay-node/admission.ts'
import { startDataPlane } from '../../relay-node/data-plane.ts'
import type { Engine } from '../../relay-node/engine.ts'
import { startStatsServer } from '../../relay-node/stats-server.ts'
import { type PublisherReply, type SwitcherTypeName, switcherTypes, wrongFields } from '../support/scene-switcher.ts'
import { acknowledgement, conclusion, data, handshake, handshakeTypes, read } from '../support/srt-packets.ts'
import { eventually, streamToken } from './running.ts'

const streamId = `publish/live/${streamToken}`

const engineSocketId = 99

/** An engine that agrees to every connection, and acknowledges each packet with an estimate of the network path. */
async function givenEngine(): Promise<Engine> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  socket.on('message', (packet, from) => {
    const reply = (datagram: Buffer) => socket.send(datagram, from.port)
    if (packet.readUInt16BE(0) !== 0x8000) return void reply(acknowledgement(packet.readUInt32BE(0) + 1, 41_500))
    const type = read(packet).type === handshakeTypes.induction ? handshakeTypes.induction : handshakeTypes.conclusion
    reply(handshake({ type, cookie: 4711, socketId: engineSocketId, destination: read(packet).socketId }))
  })
  return {
    name: 'srt-live-transmit',
    open: async () => ({
      address: '127.0.0.1',
      port: socket.address().port,
      ended: new Promise(() => {}),
      connected() {},
      close() {},
    }),
    close: async () => {},
  }
}

async function givenRelay() {
  const log = () => {}
  const plane = await startDataPlane({
    hosts: ['127.0.0.1'],
    ports: { srtlaPort: 0, publishPort: 0, playPort: 0 },
    admission: admitPlainToken(streamToken),
    capMbps: 48,
    streamWeakKbps: 800,
    statsAddresses: 'masked',
    log,
    engine: await givenEngine(),
  })
  const server = await startStatsServer({
    hosts: ['127.0.0.1'],
    port: 0,
    source: plane,
    instanceId: 'i-1',
    unknownSince: () => null,
    owner: { secret: 'secret', sessionId: () => undefined },
    log,
  })
  onTestFinished(async () => {
    await Promise.all([plane.close('the test is over'), server.close()])
  })
  const url = `http://127.0.0.1:${server.port}/stats?publisher=${streamId}`
  return {
    publishPort: plane.ports().publishPort,
    ask: async () => (await (await fetch(url)).json()) as PublisherReply,
  }
}

/** Publishes 2 Mbit/s until the test is over. */
async function publish(port: number) {
  const socket = createSocket('udp4')
  const received: Buffer[] = []
  socket.on('message', (packet) => received.push(packet))
  const untilHandshake = async (type: number) =>
    eventually(
      () => received.find((packet) => packet.length >= 64 && read(packet).type === type),
      (packet) => packet !== undefined,
    )
  socket.send(handshake({ version: 4 }), port, '127.0.0.1')
  const { cookie } = read((await untilHandshake(handshakeTypes.induction)) ?? Buffer.alloc(64))
  socket.send(conclusion({ cookie, streamId }), port, '127.0.0.1')
  await untilHandshake(handshakeTypes.conclusion)
  let number = 1
  const startedAt = performance.now()
  const timer = setInterval(() => {
    // A lost packet now and then.
    if (number % 50 === 0) number += 1
    socket.send(data(number, { destination: engineSocketId }), port, '127.0.0.1')
    number += 1
  }, 5)
  onTestFinished(() => {
    clearInterval(timer)
    socket.close()
  })
  return { startedAt }
}

test('every kind of scene switcher finds all fields with their types, from the first full second of a stream on', async () => {
  const { publishPort, ask } = await givenRelay()
  expect(await ask()).toEqual({ status: 'ok', publishers: {} })

  const { startedAt } = await publish(publishPort)
  const reply = await eventually(ask, ({ publisher }) => publisher !== undefined)

  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_000)
  for (const name of Object.keys(switcherTypes) as SwitcherTypeName[]) {
    const publisher = switcherTypes[name].find(reply, streamId)
    expect([name, wrongFields(name, publisher)]).toEqual([name, []])
    expect(publisher?.bitrate).toBeGreaterThan(0)
    expect(publisher?.rtt).toBe(41.5)
  }
  expect(reply.publishers[streamId]).toMatchObject({ pktRcvDrop: expect.any(Number), bytesRcvDrop: expect.any(Number) })
})
