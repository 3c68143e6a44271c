/**
 * Datagrams as an attacker writes them: packets of SRT and SRTLA, most of them damaged, from sources that are forged. A
 * seed gives the same contents in the same order; addresses and ports are those of the run.
 */
import { buildAck, buildNotice, buildRegistration } from '../../relay-node/srtla-packets.ts'
import { streamToken } from '../relay-node/running.ts'
import { createRandom, type Random } from '../support/random.ts'
import type { ForgedDatagram } from '../support/raw-datagrams.ts'
import { conclusion, control, data, extension, handshake, streamIdExtension } from '../support/srt-packets.ts'

export interface RelayTarget {
  readonly host: string
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
}

export interface Source {
  readonly address: string
  readonly port: number
}

/** At the limits of bytes and fields. */
const extremes = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff] as const

const integer = (random: Random, max: number) => Math.floor(random.next() * (max + 1))
const word = (random: Random) => (random.chance(0.3) ? random.pick(extremes) : integer(random, 0xffff_ffff))
const bytes = (random: Random, length: number) => Buffer.from(Array.from({ length }, () => integer(random, 255)))
const words = (random: Random, count: number) => {
  const buffer = Buffer.alloc(count * 4)
  for (let n = 0; n < count; n += 1) buffer.writeUInt32BE(word(random), n * 4)
  return buffer
}

type Build = (random: Random, destination: number) => Buffer

const streamIds = [
  `publish/live/${streamToken}`,
  `play/live/${streamToken}`,
  `#!::r=${streamToken},m=publish`,
  '\u0000',
  'x'.repeat(512),
] as const

/**
 * Extensions of conclusions by their types: handshake, its reply, keys, their reply, stream id, congestion, filter,
 * group.
 */
const extensionsOf = (random: Random): Buffer[] =>
  Array.from({ length: integer(random, 5) }, () =>
    random.chance(0.2)
      ? streamIdExtension(random.pick(streamIds))
      : extension(random.pick([1, 2, 3, 4, 5, 6, 7, 8, 0xffff]), bytes(random, integer(random, 80))),
  )

const handshakeOf = (random: Random, destination: number, type: number) =>
  handshake({
    type,
    destination,
    version: random.pick([4, 5, 5, 0, 6]),
    socketId: word(random),
    cookie: random.chance(0.5) ? 0 : word(random),
    extensions: extensionsOf(random),
  })

/** Every kind of packet that a caller, a listener, an encoder or a relay sends. */
const builds = {
  induction: (random, destination) => handshakeOf(random, destination, 1),
  conclusion: (random, destination) =>
    conclusion({
      destination,
      socketId: word(random),
      cookie: word(random),
      streamId: random.pick(streamIds),
      // Those without others would be admitted if they proved their address.
      extensions: random.chance(0.5) ? [] : extensionsOf(random),
    }),
  oldConclusion: (random, destination) =>
    handshake({ type: 0xffff_ffff, version: 4, destination, socketId: word(random) }),
  /** Also agreements and done of rendezvous, and refusals. */
  otherHandshake: (random, destination) =>
    handshakeOf(random, destination, random.pick([0, 0xffff_fffe, 0xffff_fffd, 1000, 1010, 1402, 2, 0x7fff_ffff])),
  keepalive: (random, destination) => control(1, bytes(random, integer(random, 8)), { destination }),
  acknowledgement: (random, destination) =>
    control(2, words(random, random.pick([0, 1, 4, 7])), { destination, information: word(random) }),
  lossReport: (random, destination) => control(3, words(random, integer(random, 20)), { destination }),
  shutdown: (random, destination) => control(5, words(random, integer(random, 1)), { destination }),
  acknowledgedAcknowledgement: (random, destination) => control(6, words(random, 1), { destination, information: 1 }),
  dropRequest: (random, destination) => control(7, words(random, 2), { destination, information: word(random) }),
  otherControl: (random, destination) =>
    control(random.pick([4, 8, 9, 0x1000, 0x7fff]), words(random, integer(random, 8)), { destination }),
  data: (random, destination) => data(word(random) & 0x7fff_ffff, { destination, isRetransmitted: random.chance(0.3) }),
  srtlaRequest: (random) => buildRegistration('reg1', bytes(random, 256)),
  srtlaRegistration: (random) => buildRegistration('reg2', bytes(random, 256)),
  srtlaNotice: (random) => buildNotice(random.pick(['reg3', 'reg_err', 'reg_ngp'])),
  srtlaKeepalive: (random) => Buffer.concat([buildNotice('keepalive'), bytes(random, integer(random, 40))]),
  srtlaAcknowledgement: (random) => buildAck(Array.from({ length: integer(random, 20) }, () => word(random))),
  /** Of types that no program uses. */
  srtlaOther: (random) => {
    const packet = bytes(random, 4 + integer(random, 60))
    packet.writeUInt16BE(random.pick([0x9101, 0x9203, 0x9212, 0x9fff, 0xffff]), 0)
    return packet
  },
} as const satisfies Readonly<Record<string, Build>>

type PacketKind = keyof typeof builds
const kinds = Object.keys(builds) as [PacketKind, ...PacketKind[]]

/** @param destination the SRT socket that the packet is for; 0 for a new connection. */
export const buildPacket = (random: Random, destination: number): Buffer =>
  builds[random.pick(kinds)](random, destination)

/** Up to 64 KiB, the longest that UDP has; most about what an Ethernet frame has. */
const longLengths = [1_471, 1_472, 1_473, 1_499, 1_500, 1_501, 2_048, 9_000, 65_507] as const

const mutations: readonly [Mutation, ...Mutation[]] = [
  function flipBit(random, packet) {
    const at = integer(random, packet.length - 1)
    packet[at] = (packet[at] ?? 0) ^ (1 << integer(random, 7))
    return packet
  },
  function replaceByte(random, packet) {
    packet[integer(random, packet.length - 1)] = word(random) & 0xff
    return packet
  },
  function replaceField(random, packet) {
    const size = random.pick([2, 4])
    if (packet.length < size) return packet
    const at = integer(random, Math.floor(packet.length / size) - 1) * size
    packet.writeUIntBE(size === 2 ? word(random) & 0xffff : word(random), at, size)
    return packet
  },
  function truncate(random, packet) {
    return packet.subarray(0, integer(random, packet.length))
  },
  function extend(random, packet) {
    return Buffer.concat([packet, bytes(random, 1 + integer(random, 64))])
  },
  function pad(random, packet) {
    return Buffer.concat([packet, Buffer.alloc(Math.max(0, random.pick(longLengths) - packet.length), packet)])
  },
  function remove(random, packet) {
    const from = integer(random, packet.length)
    return Buffer.concat([packet.subarray(0, from), packet.subarray(from + 1 + integer(random, 15))])
  },
  function repeat(random, packet) {
    const from = integer(random, packet.length)
    return Buffer.concat([packet.subarray(0, from), packet.subarray(Math.max(0, from - integer(random, 64)))])
  },
  function join(random, packet) {
    const other = buildPacket(random, word(random))
    return Buffer.concat([packet.subarray(0, integer(random, packet.length)), other.subarray(integer(random, 64))])
  },
]
type Mutation = (random: Random, packet: Buffer) => Buffer

/** @returns a damaged copy, of at most 65,507 bytes. */
export function mutate(random: Random, packet: Buffer): Buffer {
  let mutated = Buffer.from(packet)
  for (let left = 1 + integer(random, 3); left > 0 && mutated.length > 0; left -= 1)
    mutated = Buffer.from(random.pick(mutations)(random, mutated))
  return mutated.subarray(0, 65_507)
}

/** Without knowledge of a connection. */
function content(random: Random): Buffer {
  const form = random.weighted({ valid: 2, mutated: 7, bytes: 1 })
  if (form === 'bytes') return bytes(random, random.chance(0.1) ? random.pick(longLengths) : integer(random, 120))
  const packet = buildPacket(random, random.chance(0.5) ? 0 : word(random))
  return form === 'valid' ? packet : mutate(random, packet)
}

const octets = (random: Random, ...first: readonly number[]) =>
  [...first, ...Array.from({ length: 4 - first.length }, () => integer(random, 255))].join('.')
const anyPort = (random: Random) => 1 + integer(random, 65_534)
const portsOf = ({ srtlaPort, publishPort, playPort }: RelayTarget): [number, number, number] => [
  srtlaPort,
  publishPort,
  playPort,
]

/** The source of an encoder's or a player's datagrams, and where they arrive. */
export interface LiveSource extends Source {
  readonly host: string
  readonly targetPort: number
}

export interface FuzzedNetwork {
  readonly relays: readonly [RelayTarget, ...RelayTarget[]]
  /** Encoders, links and players with a stream. */
  readonly live: readonly [LiveSource, ...LiveSource[]]
}

/** Which kinds of sources, and how often. */
const sourceWeights = {
  portZero: 2,
  own: 3,
  otherRelay: 2,
  live: 4,
  thisNetwork: 1,
  multicast: 1,
  broadcast: 1,
  anyLoopback: 3,
  any: 3,
} as const

function sourceOf(random: Random, { relays, live }: FuzzedNetwork, target: RelayTarget): Source | LiveSource {
  const kind = random.weighted(sourceWeights)
  const port = anyPort(random)
  const relay = kind === 'own' ? target : random.pick(relays)
  const sources: Readonly<Record<keyof typeof sourceWeights, () => Source | LiveSource>> = {
    portZero: () => ({ address: random.pick([octets(random), target.host]), port: 0 }),
    own: () => ({ address: relay.host, port: random.pick(portsOf(relay)) }),
    otherRelay: () => ({ address: relay.host, port: random.pick(portsOf(relay)) }),
    live: () => random.pick(live),
    thisNetwork: () => ({ address: octets(random, 0), port }),
    multicast: () => ({ address: octets(random, 224 + integer(random, 15)), port }),
    broadcast: () => ({ address: random.pick(['255.255.255.255', '127.255.255.255']), port }),
    // Not 127.0.0.1, whose ports other programs have.
    anyLoopback: () => ({ address: octets(random, 127, 1 + integer(random, 254)), port }),
    any: () => ({ address: octets(random), port }),
  }
  return sources[kind]()
}

export interface DatagramFuzz {
  next(): ForgedDatagram
  /** The content from another forged source at each call. */
  forge(payload: Buffer, target: RelayTarget, targetPort: number): ForgedDatagram
}

export function createDatagramFuzz(seed: number, network: FuzzedNetwork): DatagramFuzz {
  const random = createRandom(seed)
  return {
    next() {
      const target = random.pick(network.relays)
      const source = sourceOf(random, network, target)
      const isOwnPort = 'targetPort' in source && random.chance(0.9)
      return {
        source: source.address,
        sourcePort: source.port,
        target: isOwnPort ? source.host : target.host,
        targetPort: isOwnPort ? source.targetPort : random.pick(portsOf(target)),
        payload: content(random),
      }
    },
    forge(payload, target, targetPort) {
      const { address: source, port: sourcePort } = sourceOf(random, network, target)
      return { source, sourcePort, target: target.host, targetPort, payload }
    },
  }
}
