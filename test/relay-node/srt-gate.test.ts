/** The gate: handshakes, admission, and the forwarding of datagrams. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { admitPlainToken, hashPlayKey } from '../../relay-node/admission.ts'
import { SrtGate } from '../../relay-node/srt-gate.ts'
import type { Role } from '../../relay-node/stream-access.ts'
import {
  acknowledgement,
  conclusion,
  control,
  data,
  extension,
  handshake,
  handshakeTypes,
  read,
  shutdown,
} from '../support/srt-packets.ts'
import {
  admit,
  type Caller,
  call,
  createCaller,
  engineSocketId,
  givenGate,
  play,
  publish,
  rejectionOf,
  token,
} from './gate-callers.ts'
import { eventually } from './running.ts'

/** With the magic number of a listener in its extension field. */
function inductionReply(induction: Buffer): Buffer {
  const reply = Buffer.from(induction)
  reply.writeUInt16BE(0x4a17, 22)
  return reply
}

test('an induction is answered with a cookie and the version, to the socket of the caller', async () => {
  const { gate } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')

  gate.receive('publish', handshake({ socketId: 12, version: 4 }), caller.peer, 1_000)

  const reply = read(caller.last())
  expect(reply).toMatchObject({ destination: 12, version: 5, extensions: 0x4a17, type: 1 })
  expect(reply.cookie).not.toBe(0)
  expect(caller.last()).toHaveLength(64)
})

test.each([
  ['that has a cookie', handshake({ socketId: 12, version: 5, cookie: 4711 })],
  ['of the socket 0, whose reply would look like a request', handshake({ socketId: 0 })],
  ["that has the mark of a listener's", inductionReply(handshake({ socketId: 12 }))],
])('an induction %s gets no answer', async (_, datagram) => {
  const { gate } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')
  gate.receive('publish', datagram, caller.peer, 1_000)
  gate.receive('play', datagram, caller.peer, 1_000)
  expect(caller.received).toEqual([])
})

test('a reply to a conclusion gets no answer, although it has a cookie of the gate', async () => {
  const { gate } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')
  gate.receive('publish', handshake(), caller.peer, 1_000)
  const { cookie } = read(caller.last())
  const reply = { cookie, streamId: publish, extensions: [extension(2, Buffer.alloc(12))] }
  gate.receive('publish', conclusion(reply), caller.peer, 1_000)
  gate.receive('publish', conclusion({ cookie, streamId: publish, socketId: 0 }), caller.peer, 1_000)
  expect(gate.publisher).toBeUndefined()
  expect(caller.received).toHaveLength(1)
})

test('the datagrams of an admitted publisher reach the engine unchanged and in order', async () => {
  const { gate, opened } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')
  await admit(gate, caller)

  const packets = [1, 2, 3, 4].map((number) => data(number, { destination: engineSocketId }))
  for (const packet of packets) gate.receive('publish', packet, caller.peer, 1_100)

  await eventually(
    () => opened[0]?.received.length,
    (count) => count === 4,
  )
  expect(Buffer.concat(opened[0]?.received ?? []).equals(Buffer.concat(packets))).toBe(true)
  expect(gate.publisher?.counters).toMatchObject({ dataPackets: 4, dataBytes: 4 * 1316 })
})

describe('nothing reaches the engine', () => {
  test.each([
    ['from a caller with a wrong token', 'publish/live/Zz99Yy88', 2401],
    ['from a caller without a stream id', undefined, 2401],
    ['from a player on the publish port', play, 2405],
  ])('%s, which is refused', async (_, streamId, type) => {
    const { gate, opened } = await givenGate()
    const caller = createCaller('192.0.2.1:5000')

    call(gate, caller, streamId)
    gate.receive('publish', data(1), caller.peer, 1_000)

    expect(await rejectionOf(caller)).toBe(type)
    expect(read(caller.last()).destination).toBe(77)
    expect(opened).toEqual([])
  })

  test('from a caller whose conclusion has no cookie of the gate, which gets no answer', async () => {
    const { gate, opened } = await givenGate()
    const [caller, other] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
    gate.receive('publish', handshake(), other.peer, 1_000)
    const { cookie } = read(other.last())

    gate.receive('publish', conclusion({ streamId: publish, cookie }), caller.peer, 1_000)
    gate.receive('publish', conclusion({ streamId: publish, cookie: 0 }), caller.peer, 1_000)
    gate.receive('play', conclusion({ streamId: play, cookie }), other.peer, 1_000)
    gate.receive('publish', conclusion({ streamId: publish, cookie }), other.peer, 200_000)

    await new Promise((done) => setTimeout(done, 50))
    expect(caller.received).toEqual([])
    expect(other.received).toHaveLength(1)
    expect(opened).toEqual([])
  })

  test('of a relay without an engine, which refuses its owner', async () => {
    const gate = new SrtGate({
      engine: undefined,
      admission: admitPlainToken(token),
      capMbps: 48,
      log: () => {},
      refusalMillis: 1,
    })
    const caller = createCaller('192.0.2.1:5000')
    call(gate, caller, publish)
    expect(await rejectionOf(caller)).toBe(2503)
  })
})

describe('a second publisher', () => {
  /** Sweeps as the relay does. */
  const pass = (gate: SrtGate, from: number, until: number) => {
    for (let now = from; now <= until; now += 500) gate.sweep(now)
  }
  const callers = () => [1, 2, 3].map((n) => createCaller(`192.0.2.${n}:5000`)) as [Caller, Caller, Caller]

  test('is refused while the first sends anything, and takes its place after 1.5 s without a packet', async () => {
    const { gate, opened } = await givenGate()
    const [first, second, third] = callers()
    await admit(gate, first)

    pass(gate, 1_000, 2_500)
    gate.receive('publish', control(1, Buffer.alloc(4), { destination: engineSocketId }), first.peer, 2_500)
    call(gate, second, publish, { now: 4_000 })
    expect(await rejectionOf(second)).toBe(2409)
    expect(gate.publisher?.peer.key).toBe(first.peer.key)

    call(gate, third, publish, { now: 4_001 })
    expect(gate.publisher?.peer.key).toBe(third.peer.key)
    expect(first.last().equals(shutdown(77))).toBe(true)
    await eventually(() => gate.publisher?.isOpen, Boolean)
    expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false])
  })

  test('that is not admitted leaves a quiet one in its place, which goes on within the time of SRT', async () => {
    const { gate } = await givenGate()
    const [first, stranger, player] = callers()
    await admit(gate, first)
    pass(gate, 1_000, 5_500)
    call(gate, stranger, publish.replace(token, 'Zz99Zz99'), { now: 5_600 })
    call(gate, player, play, { role: 'play', now: 5_600 })
    gate.receive('publish', data(1, { destination: engineSocketId }), first.peer, 5_900)
    pass(gate, 6_000, 10_500)
    expect(gate.publisher?.peer.key).toBe(first.peer.key)
    gate.sweep(11_000)
    expect(gate.publisher).toBeUndefined()
  })

  test('does not take the place of one whose packets this process could not read meanwhile', async () => {
    const { gate } = await givenGate()
    const [first, second, third] = callers()
    await admit(gate, first)
    pass(gate, 1_000, 1_500)
    gate.sweep(8_000)
    call(gate, second, publish, { now: 8_001 })
    expect(await rejectionOf(second)).toBe(2409)
    pass(gate, 8_500, 9_500)
    call(gate, third, publish, { now: 9_501 })
    expect(gate.publisher?.peer.key).toBe(third.peer.key)
  })
})

test('a publisher that ends its connection makes room at once, and one that forges its end does not', async () => {
  const { gate } = await givenGate()
  const [first, second] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
  await admit(gate, first)

  gate.receive('publish', shutdown(engineSocketId + 1), first.peer, 1_200)
  expect(gate.publisher?.peer.key).toBe(first.peer.key)
  gate.receive('publish', shutdown(engineSocketId), first.peer, 1_300)
  expect(gate.publisher).toBeUndefined()

  await admit(gate, second)
})

test('the end of a connection waits for the data that the cap has delayed', async () => {
  const { gate, opened } = await givenGate({ capMbps: 1 })
  const caller = createCaller('192.0.2.1:5000')
  await admit(gate, caller)
  for (let number = 1; number <= 60; number += 1)
    gate.receive('publish', data(number, { destination: engineSocketId }), caller.peer, 1_100)

  gate.receive('publish', shutdown(engineSocketId), caller.peer, 1_200)

  expect(gate.publisher?.isOpen).toBe(true)
  await eventually(
    () => gate.publisher,
    (publisher) => publisher === undefined,
  )
  await eventually(
    () => opened[0]?.received.filter((packet) => packet.readUInt8(0) < 0x80).length,
    (packets) => packets === 60,
  )
})

test('a publisher that connects again from its address replaces its own connection', async () => {
  const { gate, opened } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')
  await admit(gate, caller)
  await admit(gate, caller, publish, 'publish', 78)
  await eventually(
    () => gate.publisher?.isOpen,
    (isOpen) => isOpen === true,
  )
  expect(gate.publisher?.peerSocketId).toBe(78)
  expect(opened.map(({ isClosed }) => isClosed)).toEqual([true, false])
})

test('connections that one address replaces again and again do not start engines without limit', async () => {
  const { gate, opened } = await givenGate()
  const caller = createCaller('192.0.2.1:5000')
  const callAt = (now: number, socketId: number) => {
    gate.receive('publish', handshake({ socketId, version: 4 }), caller.peer, now)
    const { cookie } = read(
      caller.received.findLast((packet) => packet.length >= 64 && read(packet).type === handshakeTypes.induction) ??
        data(0),
    )
    gate.receive('publish', conclusion({ socketId, cookie, streamId: publish }), caller.peer, now)
  }

  // 188 within 6 s, as fast as a caller can.
  for (let n = 0; n < 188; n += 1) callAt(1_000 + n * 32, 100 + n)

  await eventually(
    () => gate.publisher?.isOpen,
    (isOpen) => isOpen === true,
  )
  expect(opened.length).toBeGreaterThanOrEqual(4)
  expect(opened.length).toBeLessThanOrEqual(16)
  // An honest encoder that repeats its handshake is admitted in time.
  callAt(9_500, 999)
  expect(gate.publisher?.peerSocketId).toBe(999)
})

test('up to eight players are admitted beside the publisher', async () => {
  const { gate } = await givenGate()
  for (let n = 1; n <= 8; n += 1) await admit(gate, createCaller(`192.0.2.${n}:4000`), play, 'play')
  const ninth = createCaller('192.0.2.9:4000')

  call(gate, ninth, play, { role: 'play' })

  expect(await rejectionOf(ninth)).toBe(2402)
  expect(gate.players).toHaveLength(8)
})

test('peers are notified when the relay closes or the engine ends', async () => {
  const { gate, opened } = await givenGate()
  const [phone, player] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
  await admit(gate, phone)
  await admit(gate, player, play, 'play')

  opened[1]?.end()
  await eventually(
    () => player.last().readUInt16BE(0),
    (type) => type === 0x8005,
  )
  gate.close('the relay is ending')

  expect(phone.last().equals(shutdown(77))).toBe(true)
  expect(gate.publisher).toBeUndefined()
})

/** Refusals are sent in the order of the calls, so all earlier ones have been sent then. */
const untilRefused = (caller: ReturnType<typeof createCaller>) =>
  eventually(
    () => caller.received.length,
    (count) => count === 2,
  )

test('a caller that came before the relay had its session is admitted by a repetition, and not refused later', async () => {
  const { gate } = await givenGate({ admission: undefined })
  const [caller, stranger] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
  call(gate, caller, publish)
  gate.admit(admitPlainToken(token))
  await admit(gate, caller)

  // Whose refusal is due later.
  call(gate, stranger, 'publish/live/other000')
  await rejectionOf(stranger)
  const types = caller.received.map((packet) => read(packet).type)
  expect(types.filter((type) => type >= 1000 && type !== handshakeTypes.conclusion)).toEqual([])
})

test('a refused caller waits for its answer, and repeating its handshake does not bring more', async () => {
  const { gate } = await givenGate({ refusalMillis: 100 })
  const [caller, later] = [createCaller('192.0.2.1:5000'), createCaller('192.0.2.2:5000')]
  call(gate, caller, 'publish/live/wrong')
  for (let n = 0; n < 20; n += 1) {
    const cookie = read(caller.received[0] ?? Buffer.alloc(64)).cookie
    gate.receive('publish', conclusion({ streamId: 'publish/live/wrong', cookie }), caller.peer, 1_000)
  }
  expect(caller.received).toHaveLength(1)

  call(gate, later, 'publish/live/wrong')
  await untilRefused(later)
  expect(caller.received).toHaveLength(2)
})

test.each([
  ['one host', (n: number) => `192.0.2.1:${5000 + n}`, '192.0.2.2:5000'],
  ['a /64 of IPv6', (n: number) => `[2001:db8:0:1::${n + 1}]:5000`, '[2001:db8:0:2::1]:5000'],
])('%s has four pending refusals at most', async (_, keyOf, other) => {
  const { gate } = await givenGate({ refusalMillis: 50 })
  const callers = Array.from({ length: 20 }, (_, n) => createCaller(keyOf(n)))
  const later = createCaller(other)
  // As fast as the inductions of one network are answered.
  for (const [n, caller] of [...callers, later].entries())
    call(gate, caller, 'publish/live/wrong', { now: 1_000 + n * 50 })
  await untilRefused(later)
  expect(callers.filter(({ received }) => received.length === 2)).toHaveLength(4)
})

test('random and mutated datagrams are not admitted, get no longer answers and leave nothing behind', async () => {
  const { gate, opened } = await givenGate()
  const wellFormed = [handshake(), conclusion({ streamId: publish }), data(1), shutdown(0)]
  const mutated = fc
    .tuple(fc.constantFrom(...wellFormed), fc.array(fc.tuple(fc.nat(120), fc.nat(255))), fc.nat(140))
    .map(([packet, changes, length]) => {
      const copy = Buffer.from(packet)
      for (const [offset, value] of changes) if (offset < copy.length) copy[offset] = value
      return copy.subarray(0, length)
    })
  const datagrams = fc.oneof(
    mutated,
    fc.uint8Array({ maxLength: 1_600 }).map((bytes) => Buffer.from(bytes)),
  )
  fc.assert(
    fc.property(datagrams, fc.nat(1_000), fc.constantFrom<Role>('publish', 'play'), (datagram, host, role) => {
      const caller = createCaller(`198.51.100.7:${host}`)
      gate.receive(role, datagram, caller.peer, 1_000)
      expect(Buffer.concat(caller.received).length).toBeLessThanOrEqual(datagram.length)
    }),
    { numRuns: 5_000 },
  )
  expect(opened).toEqual([])
  expect(gate.publisher).toBeUndefined()
})

test('data of the publisher is counted packet by packet, and none of players and strangers', async () => {
  const { gate, published } = await givenGate()
  const [publisher, player, stranger] = [
    createCaller('192.0.2.1:5000'),
    createCaller('192.0.2.2:5000'),
    createCaller('192.0.2.3:5000'),
  ]
  await admit(gate, publisher)
  await admit(gate, player, play, 'play')

  for (const number of [1, 2])
    gate.receive('publish', data(number, { destination: engineSocketId }), publisher.peer, 2_000)
  gate.receive('play', data(3, { destination: engineSocketId }), player.peer, 2_000)
  gate.receive('publish', data(4, { destination: engineSocketId }), stranger.peer, 2_000)
  gate.receive('publish', shutdown(engineSocketId), publisher.peer, 2_000)

  expect(published).toEqual([data(1).length - 16, data(2).length - 16])
})

test('of each data packet only the first copy counts as stream, the others as repeats', async () => {
  const { gate, published } = await givenGate()
  const publisher = createCaller('192.0.2.1:5000')
  await admit(gate, publisher)
  const send = (number: number, isRetransmitted: boolean) =>
    gate.receive('publish', data(number, { destination: engineSocketId, isRetransmitted }), publisher.peer, 2_000)

  send(1, false)
  send(1, false)
  send(1, true)
  send(2, true)

  expect(published).toHaveLength(2)
  expect(gate.publisher?.counters).toMatchObject({
    dataPackets: 2,
    dataBytes: 2 * (data(1).length - 16),
    copies: 2,
    repeats: 3,
  })
})

test('data of the publisher is recognized by the socket and by a number that is under way', async () => {
  const { gate } = await givenGate()
  const publisher = createCaller('192.0.2.1:5000')
  await admit(gate, publisher)
  const packetOf = (number: number, destination = engineSocketId) => data(number, { destination })
  gate.receive('publish', packetOf(1_000_000), publisher.peer, 2_000)

  const isOwn = (packet: Buffer) => gate.publisher?.isOwnData(packet)
  expect(isOwn(packetOf(1_000_500))).toBe(true)
  expect(isOwn(packetOf(1_000_500, engineSocketId + 1))).toBe(false)
  expect(isOwn(packetOf(2_000_000))).toBe(false)
  expect(isOwn(acknowledgement(1_000_500, 1_000))).toBe(false)
})

test('players whose key was withdrawn are closed, and all others stay', async () => {
  const [kept, withdrawn] = ['a'.repeat(22), 'b'.repeat(22)]
  const admission = { ...admitPlainToken(token), playKeys: [kept, withdrawn].map(hashPlayKey) }
  const { gate } = await givenGate({ admission })
  const [phone, first, second] = ['1', '2', '3'].map((end) => createCaller(`192.0.2.${end}:5000`)) as [
    Caller,
    Caller,
    Caller,
  ]
  await admit(gate, phone)
  await admit(gate, first, `play/live/${kept}`, 'play')
  await admit(gate, second, `play/live/${withdrawn}`, 'play')
  expect(gate.takeUsedPlayKeys().toSorted()).toEqual([kept, withdrawn].map(hashPlayKey).toSorted())

  gate.admit({ ...admission, playKeys: [hashPlayKey(kept)] })

  expect(gate.players.map(({ peer }) => peer)).toEqual([first.peer])
  expect(gate.publisher?.isOpen).toBe(true)
  expect(second.last().equals(shutdown(77))).toBe(true)
  expect(gate.takeUsedPlayKeys()).toEqual([hashPlayKey(kept)])
})
