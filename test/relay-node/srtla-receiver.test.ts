/** The receiver of SRTLA: registration, links, feedback. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Peer } from '../../relay-node/peer.ts'
import { buildAck, buildNotice, buildRegistration } from '../../relay-node/srtla-packets.ts'
import { ipv6Remote, remote, Scene, srtControl, srtData } from './srtla-encoder.ts'

const [a, b, c] = [remote(1), remote(2), remote(3)]
const [ack, nak, shutdown] = [srtControl(2), srtControl(3), srtControl(5)]

describe('registration', () => {
  test('the id of a group begins with the half that the encoder chose', () => {
    const requested = randomBytes(256)
    const id = new Scene().requestGroup(a, requested)
    expect(id.subarray(0, 128)).toEqual(requested.subarray(0, 128))
    expect(id.subarray(128)).not.toEqual(requested.subarray(128))
  })

  test('each link joins the group with its id', () => {
    const scene = new Scene()
    const id = scene.requestGroup(a)
    expect([a, b, c].map((link) => scene.join(id, link))).toEqual(['reg3', 'reg3', 'reg3'])
    expect(scene.join(id, a)).toBe('reg3')
  })

  test('an id that was not issued here has no group', () => {
    const scene = new Scene()
    expect(scene.join(randomBytes(256), a)).toBe('reg_ngp')
    const id = scene.requestGroup(a)
    id.writeUInt8(id.readUInt8(0) ^ 1, 0)
    expect(scene.join(id, a)).toBe('reg_ngp')
    expect(scene.join(new Scene().requestGroup(a), a)).toBe('reg_ngp')
  })

  test('an id that was requested too long ago creates no group', () => {
    const scene = new Scene()
    const [early, late] = [scene.requestGroup(a), scene.requestGroup(b)]
    scene.now += 10_000
    expect(scene.join(early, a)).toBe('reg3')
    scene.now += 1
    expect(scene.join(late, b)).toBe('reg_ngp')
  })

  test('repeated requests create no groups, and each of their ids can be used', () => {
    const scene = new Scene({ groupsMax: 2 })
    const { peer } = scene.register(b)
    const ids = Array.from({ length: 1_000 }, () => scene.requestGroup(a))
    expect(scene.endedGroups).toEqual([])
    expect(scene.join(ids[500] as Buffer, a)).toBe('reg3')
    peer.send(ack)
    expect(scene.sent.at(-1)?.to).toBe('198.51.100.7:2')
  })

  test('a group has at most 16 links, and a new link replaces one that is stale', () => {
    const scene = new Scene()
    const links = Array.from({ length: 16 }, (_, index) => remote(100 + index))
    const { id } = scene.register(...links)
    expect(scene.join(id, a)).toBe('reg_err')

    scene.now += 3_001
    for (const link of links.slice(1)) scene.isLink(link)
    expect(scene.join(id, a)).toBe('reg3')
    expect(scene.isLink(links[0] as typeof a)).toBe(false)
    expect(scene.join(id, b)).toBe('reg_err')
  })

  test('a link that registers with another group moves there', () => {
    const scene = new Scene()
    const first = scene.register(a, b)
    const second = scene.register(a)
    expect(second.peer.key).not.toBe(first.peer.key)
    first.peer.send(ack)
    expect(scene.sent.at(-1)?.to).toBe('198.51.100.7:2')
  })

  test('a working link of the publisher does not move, so that a forged source address cannot take it', () => {
    const scene = new Scene()
    const publisher = scene.register(a)
    scene.receiver.markAdmitted(publisher.peer)
    const other = scene.register(c)
    expect(scene.join(other.id, a)).toBe('reg_err')

    scene.now += 3_001
    expect(scene.join(other.id, a)).toBe('reg3')
  })
})

describe('a link that sends from another port without a registration', () => {
  const own = srtData(7)
  const moved = remote(9)

  function givenPublisher() {
    const scene = new Scene()
    scene.isOfStream = (datagram) => datagram === own
    const { peer } = scene.register(a, b)
    scene.receiver.markAdmitted(peer)
    return { scene, peer }
  }

  test("goes on with the publisher's stream", () => {
    const { scene, peer } = givenPublisher()
    scene.srtPackets.length = 0
    scene.receive(own, moved)
    expect(scene.srtPackets).toEqual([{ group: peer, datagram: own }])
    expect(scene.isLink(moved)).toBe(true)
  })

  test.each([
    ['with packets of another stream', srtData(8), moved],
    ['from another address', own, remote(1, '203.0.113.9')],
  ])('is a stranger %s', (_, datagram, from) => {
    const { scene } = givenPublisher()
    scene.srtPackets.length = 0
    scene.receive(datagram, from)
    expect(scene.srtPackets).toEqual([])
    expect(scene.isLink(from)).toBe(false)
  })
})

describe('packets of links', () => {
  test('SRT packets of all links pass unchanged in the order of their arrival', () => {
    const scene = new Scene()
    const { peer } = scene.register(a, b, c)
    scene.srtPackets.length = 0
    const packets = [3, 1, 2, 9, 4].map((number) => srtData(number))
    for (const [index, packet] of packets.entries()) scene.receive(packet, [a, b, c][index % 3] as typeof a)
    expect(scene.srtPackets.map(({ datagram }) => datagram)).toEqual(packets)
    expect(scene.srtPackets.every(({ group }) => group === peer)).toBe(true)
  })

  test('every tenth data packet of a link is answered with an ACK over the same link', () => {
    const scene = new Scene()
    scene.register(a, b)
    for (let number = 0; number < 9; number += 1) {
      expect(scene.receive(srtData(number), a)).toEqual([])
      expect(scene.receive(srtData(100 + number), b)).toEqual([])
    }
    expect(scene.receive(srtControl(1), a)).toEqual([])
    expect(scene.receive(srtData(9), a)).toEqual([
      { to: '198.51.100.7:1', datagram: buildAck([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) },
    ])
    expect(scene.receive(srtData(10), a)).toEqual([])
  })

  test('a keepalive returns whole, also one with content of the encoder', () => {
    const scene = new Scene()
    scene.register(a)
    for (const content of [0, 8, 30, 36]) {
      const keepalive = Buffer.concat([buildNotice('keepalive'), randomBytes(content)])
      expect(scene.receive(keepalive, a)).toEqual([{ to: '198.51.100.7:1', datagram: keepalive }])
    }
  })

  test('two keepalives of a link return per second, and up to four after a pause', () => {
    const scene = new Scene()
    scene.register(a, b)
    const echoesOf = (count: number) => Array.from({ length: count }, () => scene.isLink(a)).filter(Boolean).length
    expect(echoesOf(100)).toBe(4)
    expect(scene.isLink(b)).toBe(true)
    scene.now += 1_000
    expect(echoesOf(100)).toBe(2)
    scene.now += 60_000
    expect(echoesOf(100)).toBe(4)
  })

  test('two receivers that are links of each other echo a forged keepalive a few times, and no more', () => {
    const [first, second] = [new Scene(), new Scene()]
    for (const scene of [first, second]) {
      const id = scene.requestGroup(c)
      expect(scene.join(id, a)).toBe('reg3')
    }
    const oneWayMillis = 20
    let datagram = Buffer.concat([buildNotice('keepalive'), randomBytes(1_000)])
    let echoes = 0
    for (let scene = first; ; scene = scene === first ? second : first) {
      first.now += oneWayMillis
      second.now += oneWayMillis
      const [answer] = scene.receive(datagram, a)
      if (answer === undefined) break
      datagram = answer.datagram as typeof datagram
      echoes += 1
      expect(echoes).toBeLessThan(20)
    }
  })

  test('unknown addresses get no answer, and their packets do not pass', () => {
    const scene = new Scene()
    for (const datagram of [buildNotice('keepalive'), srtData(1), srtControl(0), buildNotice('reg3'), buildAck([1])]) {
      expect(scene.receive(datagram, a)).toEqual([])
    }
    expect(scene.srtPackets).toEqual([])
  })

  test('packets that only a receiver sends do not pass', () => {
    const scene = new Scene()
    scene.register(a)
    scene.srtPackets.length = 0
    const packets = [buildAck([1, 2, 3, 4, 5]), buildNotice('reg3'), buildNotice('reg_err'), buildNotice('reg_ngp')]
    for (const packet of packets) expect(scene.receive(packet, a)).toEqual([])
    expect(scene.srtPackets).toEqual([])
  })
})

describe('packets to the encoder', () => {
  const destinations = (scene: Scene, peer: Peer, datagram: Buffer) => {
    const before = scene.sent.length
    peer.send(datagram)
    return scene.sent.slice(before).map(({ to }) => to)
  }

  test('acknowledgements take every link, other packets the link with the latest SRT packet', () => {
    const scene = new Scene()
    const { peer } = scene.register(a, b, c)
    scene.receive(srtData(1), b)
    scene.receive(buildNotice('keepalive'), c)
    expect(destinations(scene, peer, ack)).toEqual(['198.51.100.7:1', '198.51.100.7:2', '198.51.100.7:3'])
    expect(destinations(scene, peer, nak)).toEqual(['198.51.100.7:2'])
    expect(destinations(scene, peer, shutdown)).toEqual(['198.51.100.7:2'])
  })

  test('a link that another address has registered gets no more bytes than it sent', () => {
    const scene = new Scene()
    const victim = remote(9, '203.0.113.9')
    const { peer, id } = scene.register(a)
    expect(scene.join(id, victim)).toBe('reg3')
    const bytesTo = (port: number) =>
      scene.sent.filter(({ to }) => to.endsWith(`:${port}`)).reduce((sum, { datagram }) => sum + datagram.length, 0)

    for (let n = 0; n < 1_000; n += 1) peer.send(ack)
    // The registration had 258 bytes.
    expect(bytesTo(9)).toBeLessThanOrEqual(258)
    expect(bytesTo(9)).toBeGreaterThan(200)
    expect(bytesTo(1)).toBeGreaterThan(20_000)

    const before = bytesTo(9)
    scene.receive(srtData(1), victim)
    for (let n = 0; n < 10; n += 1) peer.send(ack)
    expect(bytesTo(9) - before).toBe(10 * ack.length)
  })

  test('after the removal of that link, the one with the latest datagram takes its place', () => {
    const scene = new Scene()
    const { peer } = scene.register(a, b, c)
    for (let second = 0; second < 11; second += 1) {
      scene.isLink(a)
      scene.now += 500
      scene.isLink(b)
      scene.pass(500)
    }
    expect(scene.isLink(c)).toBe(false)
    expect(destinations(scene, peer, shutdown)).toEqual(['198.51.100.7:2'])
  })

  test('a group that ended sends nothing', () => {
    const scene = new Scene()
    const { peer } = scene.register(a)
    for (let second = 0; second < 25; second += 1) scene.pass(1_000)
    expect(scene.endedGroups).toEqual([peer])
    expect(destinations(scene, peer, shutdown)).toEqual([])
    expect(destinations(scene, peer, ack)).toEqual([])
  })
})

describe('timeouts', () => {
  test('a link is removed after 10 seconds of silence, and a keepalive is enough to stay', () => {
    const scene = new Scene()
    scene.register(a, b)
    for (let second = 0; second < 10; second += 1) {
      scene.isLink(a)
      scene.pass(1_001)
    }
    expect([scene.isLink(a), scene.isLink(b)]).toEqual([true, false])
  })

  test('an encoder whose links were all dead for 5 seconds continues, also from new addresses', () => {
    const scene = new Scene()
    const { peer, id } = scene.register(a, b)
    for (let second = 0; second < 5; second += 1) scene.pass(1_000)
    expect([scene.join(id, a), scene.join(id, c)]).toEqual(['reg3', 'reg3'])
    scene.receive(srtData(7), c)
    expect(scene.srtPackets.at(-1)?.group).toBe(peer)
    expect(scene.endedGroups).toEqual([])
  })

  test('a group outlives its last link by 10 seconds, then its encoder has to request another', () => {
    const scene = new Scene()
    const { peer, id } = scene.register(a)
    scene.pass(10_001)
    scene.pass(10_000)
    expect(scene.isLink(a)).toBe(false)
    expect(scene.join(id, a)).toBe('reg3')

    scene.pass(10_001)
    scene.pass(10_001)
    expect(scene.endedGroups).toEqual([peer])
    expect(scene.join(id, a)).toBe('reg_ngp')
    expect(scene.register(a).peer.key).not.toBe(peer.key)
  })
})

describe('the number of groups is limited', () => {
  test('an address that registers many groups displaces its own, the oldest first', () => {
    const scene = new Scene({ groupsMax: 4 })
    const encoder = scene.register(remote(1, '203.0.113.9'))
    const flood = Array.from({ length: 100 }, (_, index) => scene.register(remote(index)))
    expect(scene.endedGroups).toEqual(flood.slice(0, 97).map(({ peer }) => peer))
    expect(scene.join(encoder.id, remote(1, '203.0.113.9'))).toBe('reg3')
  })

  test('the addresses of an IPv6 /64 count as one, and those of the next one as another', () => {
    const scene = new Scene({ groupsMax: 4 })
    const encoder = scene.register(ipv6Remote(1, '2001:db8:0:2::7'))
    const flood = Array.from({ length: 100 }, (_, n) =>
      scene.register(ipv6Remote(1, `2001:db8:0:1::${n.toString(16)}`)),
    )
    expect(scene.endedGroups).toEqual(flood.slice(0, 97).map(({ peer }) => peer))
    expect(scene.join(encoder.id, ipv6Remote(1, '2001:db8:0:2::7'))).toBe('reg3')
  })

  test('the origin of a group is the address that requested it, not the forged one that registers', () => {
    const scene = new Scene({ groupsMax: 4 })
    const encoder = scene.register(remote(1, '203.0.113.9'))
    for (let n = 0; n < 100; n += 1) {
      expect(scene.join(scene.requestGroup(a), remote(n, `192.0.2.${n}`))).toBe('reg3')
    }
    expect(scene.endedGroups).not.toContain(encoder.peer)
  })

  test("the publisher's group is never displaced", () => {
    const scene = new Scene({ groupsMax: 4 })
    const { peer } = scene.register(remote(1, '203.0.113.9'))
    scene.receiver.markAdmitted(peer)
    for (let n = 0; n < 250; n += 1) scene.register(remote(1, `192.0.2.${n}`))
    expect(scene.endedGroups).toHaveLength(247)
    expect(scene.endedGroups).not.toContain(peer)
  })

  test('the next publisher replaces the protected one', () => {
    const scene = new Scene({ groupsMax: 2 })
    const [first, second] = [scene.register(a), scene.register(b)]
    scene.receiver.markAdmitted(first.peer)
    scene.receiver.markAdmitted(second.peer)
    scene.register(c)
    expect(scene.endedGroups).toEqual([first.peer])
  })
})

describe('counters', () => {
  test('no group is shown before one is admitted, or after it ended', () => {
    const scene = new Scene()
    const { peer } = scene.register(a)
    expect(scene.receiver.links(scene.now)).toEqual([])
    scene.receiver.markAdmitted(peer)
    expect(scene.receiver.links(scene.now)).toHaveLength(1)
    scene.pass(10_001)
    scene.pass(10_001)
    expect(scene.receiver.links(scene.now)).toEqual([])
    scene.receiver.markAdmitted(peer)
    expect(scene.receiver.links(scene.now)).toEqual([])
  })

  test('they count the SRT packets of each link, and show when it was active', () => {
    const scene = new Scene()
    const registeredAt = scene.now
    const { peer } = scene.register(a, b)
    scene.receiver.markAdmitted(peer)
    scene.now += 500
    scene.receive(srtData(1, 1_332), a)
    scene.now += 500
    scene.isLink(b)

    expect(scene.receiver.links(scene.now)).toMatchObject([
      {
        id: 'link-1',
        addr: '198.51.100.7:1',
        bytes: 1_352,
        pkts: 2,
        firstAt: registeredAt,
        lastAt: registeredAt + 500,
      },
      { id: 'link-2', addr: '198.51.100.7:2', bytes: 20, pkts: 1, firstAt: registeredAt, lastAt: registeredAt + 1_000 },
    ])
  })

  test('they show the longest gap of the last seconds, how late packets were, and the time that the encoder measured', () => {
    const scene = new Scene()
    const { peer } = scene.register(a, b)
    scene.receiver.markAdmitted(peer)
    scene.pass(700)
    scene.receive(srtData(1), a)
    peer.bond?.receiveData({ sequenceNumber: 1, isRepeat: false, lateMillis: 40 })
    scene.receive(srtData(2), a)
    peer.bond?.receiveData({ sequenceNumber: 2, isRepeat: false, lateMillis: 0 })
    scene.receive(srtData(3), b)
    peer.bond?.receiveData({ sequenceNumber: 3, isRepeat: true, lateMillis: 0 })
    const keepalive = Buffer.concat([buildNotice('keepalive'), Buffer.alloc(36)])
    keepalive.writeUInt32BE(0xc01f_0001, 10)
    keepalive.writeUInt32BE(45, 26)
    scene.receive(keepalive, b)

    expect(scene.receiver.links(scene.now).map(({ reading }) => reading)).toEqual([
      { packets: 2, late: 0.5, lateMillis: 20, gapMillisMax: 700, lost: undefined, rttMillis: undefined },
      { packets: 0, late: 0, lateMillis: 0, gapMillisMax: 700, lost: undefined, rttMillis: 45 },
    ])
    for (let second = 0; second < 11; second += 1) {
      scene.pass(1_000)
      for (const link of [a, b]) scene.receive(buildNotice('keepalive'), link)
    }
    expect(scene.receiver.links(scene.now)[0]?.reading).toMatchObject({ packets: 0, gapMillisMax: 1_000 })
  })

  test('a peer of another kind is not admitted', () => {
    const scene = new Scene()
    scene.receiver.markAdmitted({ key: '198.51.100.7:1', host: '198.51.100.7', protocol: 'srt', send: () => {} })
    expect(scene.receiver.links(scene.now)).toEqual([])
  })

  test('an IPv6 link has its address in brackets', () => {
    const scene = new Scene()
    const { peer } = scene.register(ipv6Remote(5))
    scene.receiver.markAdmitted(peer)
    expect(scene.receiver.links(scene.now)).toMatchObject([{ addr: '[2001:db8::7]:5' }])
  })

  test('the links of a group can be of both families, and each gets its feedback', () => {
    const scene = new Scene()
    const { peer } = scene.register(a, ipv6Remote(5))
    scene.receiver.markAdmitted(peer)
    expect(scene.receiver.links(scene.now)).toMatchObject([{ addr: '198.51.100.7:1' }, { addr: '[2001:db8::7]:5' }])
    const before = scene.sent.length
    peer.send(ack)
    expect(scene.sent.slice(before).map(({ to }) => to)).toEqual(['198.51.100.7:1', '[2001:db8::7]:5'])
  })
})

test('a registration with a truncated or padded id gets no answer', () => {
  const scene = new Scene()
  const id = scene.requestGroup(a)
  expect(scene.receive(buildRegistration('reg2', id).subarray(0, 200), a)).toEqual([])
  expect(scene.receive(Buffer.concat([buildRegistration('reg2', id), Buffer.alloc(40)]), a)).toEqual([])
})
