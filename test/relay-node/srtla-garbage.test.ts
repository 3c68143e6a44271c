/** The SRTLA receiver under datagrams of arbitrary content from many addresses. */
import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addressOf, type Remote } from '../../relay-node/peer.ts'
import { buildNotice, buildRegistration } from '../../relay-node/srtla-packets.ts'
import { remote, Scene, srtControl, srtData } from './srtla-encoder.ts'

const anyRemote = fc.nat({ max: 999 }).map((n) => remote(n, `192.0.2.${n % 50}`))

/** A step of a sender: an arbitrary datagram, a valid one, or a valid one with a changed byte or length. */
const anyStep = fc.oneof(
  fc.record({ kind: fc.constant('bytes' as const), bytes: fc.uint8Array({ maxLength: 1_600 }) }),
  fc.record({
    kind: fc.constant('valid' as const),
    packet: fc.constantFrom('reg1', 'reg2', 'old_reg2', 'keepalive', 'data', 'control', 'ack'),
    change: fc.option(fc.record({ at: fc.nat({ max: 300 }), value: fc.nat({ max: 255 }) }), { nil: undefined }),
    length: fc.option(fc.nat({ max: 300 }), { nil: undefined }),
    millis: fc.nat({ max: 500 }),
  }),
)
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never

function buildStep(step: Step, ids: readonly Buffer[]): Buffer {
  if (step.kind === 'bytes') return Buffer.from(step.bytes)
  const id = (step.packet === 'old_reg2' ? ids[0] : ids.at(-1)) ?? randomBytes(256)
  const datagrams = {
    reg1: () => buildRegistration('reg1', randomBytes(256)),
    reg2: () => buildRegistration('reg2', id),
    old_reg2: () => buildRegistration('reg2', id),
    keepalive: () => buildNotice('keepalive'),
    data: () => srtData(7, 16),
    control: () => srtControl(0),
    ack: () => srtControl(2),
  }
  const datagram = datagrams[step.packet as keyof typeof datagrams]()
  if (step.change && step.change.at < datagram.length) datagram.writeUInt8(step.change.value, step.change.at)
  return step.length === undefined ? datagram : datagram.subarray(0, step.length)
}

test('whatever arrives, nothing throws, state is limited, and no address gets more bytes than it sent', () => {
  const limits = { groupsMax: 4, linksPerGroupMax: 3 }
  fc.assert(
    fc.property(fc.array(fc.tuple(anyStep, anyRemote), { minLength: 50, maxLength: 400 }), (steps) => {
      const scene = new Scene(limits)
      const ids: Buffer[] = []
      const balance = new Map<string, number>()
      const remotes = new Map<string, Remote>()
      for (const [step, from] of steps) {
        const datagram = buildStep(step, ids)
        const addr = addressOf(from)
        remotes.set(addr, from)
        balance.set(addr, (balance.get(addr) ?? 0) + datagram.length)
        for (const { to, datagram: answer } of scene.receive(datagram, from)) {
          balance.set(to, (balance.get(to) ?? 0) - answer.length)
          if (answer.length === 258) ids.push(answer.subarray(2))
        }
        if (step.kind === 'valid') scene.pass(step.millis)
      }
      expect([...balance.values()].filter((bytes) => bytes < 0)).toEqual([])
      const links = [...remotes.values()].filter((from) => scene.isLink(from))
      expect(links.length).toBeLessThanOrEqual(limits.groupsMax * limits.linksPerGroupMax)
    }),
    { numRuns: 200 },
  )
})

test("a flood from 1,000 addresses does not disturb the publisher's group", () => {
  const scene = new Scene()
  const [wifi, modem] = [remote(1, '203.0.113.9'), remote(2, '203.0.113.10')]
  const { peer } = scene.register(wifi, modem)
  scene.receiver.markAdmitted(peer)
  scene.srtPackets.length = 0
  for (let n = 0; n < 20_000; n += 1) {
    const from = remote(n % 1_000, `192.0.2.${n % 200}`)
    scene.receive(randomBytes(n % 1_500), from)
    if (n % 4 === 0) scene.join(scene.requestGroup(from), from)
    if (n % 10 === 0) scene.receive(srtData(n), from)
    if (n % 20 === 0) scene.receive(srtData(n), n % 40 === 0 ? wifi : modem)
    if (n % 100 === 0) scene.pass(100)
  }
  const own = scene.srtPackets.filter(({ group }) => group === peer)
  expect(own.map(({ datagram }) => datagram.readUInt32BE(0))).toEqual(Array.from({ length: 1_000 }, (_, n) => n * 20))
  expect(scene.isLink(wifi) && scene.isLink(modem)).toBe(true)
})

/** A relay's. */
const answersPerSecond = { perNetwork: 25, total: 6_000 }

test('requests from forged addresses displace neither a group nor a request that is not complete', () => {
  const scene = new Scene({ answersPerSecond })
  const encoder = remote(1, '203.0.113.9')
  const flood = (seconds: number) => {
    for (let n = 0; n < seconds * 1_500; n += 1) {
      scene.receive(buildRegistration('reg1', randomBytes(256)), remote(n, `10.0.${n % 256}.1`))
      if (n % 1_500 === 0) scene.now += 1_000
    }
  }
  const id = scene.requestGroup(encoder)
  flood(8)
  expect(scene.join(id, encoder)).toBe('reg3')
  flood(8)
  expect(scene.isLink(encoder)).toBe(true)
})

test('a flood of registrations is answered at a limited rate, and an encoder can still add links', () => {
  const scene = new Scene({ answersPerSecond })
  const { id } = scene.register(remote(1, '203.0.113.9'))
  const answers = { reg1: 0, reg2: 0 }
  for (let n = 0; n < 10_000; n += 1) {
    const kind = n % 2 === 0 ? 'reg1' : 'reg2'
    const from = remote(n, `10.${n % 256}.${n % 7}.1`)
    answers[kind] += scene.receive(buildRegistration(kind, randomBytes(256)), from).length
  }
  // What may be taken at once: a hundredth of what may be taken in a second.
  for (const kind of ['reg1', 'reg2'] as const) {
    expect(answers[kind]).toBeGreaterThan(40)
    expect(answers[kind]).toBeLessThan(80)
  }
  expect(scene.join(id, remote(2, '203.0.113.9'))).toBe('reg3')

  scene.now += 1_000
  expect(scene.join(scene.requestGroup(remote(3)), remote(3))).toBe('reg3')
})
