/** A live stream whose packets are changed, missing, repeated or of another stream, from a seed. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { Random } from '../../support/random.ts'

const packetBytes = 188

/** Two seconds of ffmpeg's test picture and noise, in 64×64 pixels with B-frames. */
const recordings = ['h264-aac', 'hevc-opus'].map((name) =>
  gunzipSync(readFileSync(new URL(`./${name}.mpegts.gz`, import.meta.url))),
)

const mutations = {
  none: 60,
  flip: 12,
  drop: 4,
  repeat: 3,
  swap: 3,
  truncate: 2,
  insert: 1,
  garbage: 3,
  otherPid: 3,
  otherTimes: 4,
  otherField: 3,
  otherTable: 2,
} as const

export class MutatedPackets {
  readonly #random: Random
  #recording = recordings[0] ?? Buffer.alloc(0)
  #at = 0
  #waiting: Buffer | undefined

  constructor(random: Random) {
    this.#random = random
  }

  /** As after another encoder has begun. */
  restart(): void {
    this.#recording = this.#random.pick([recordings[0] ?? Buffer.alloc(0), ...recordings])
    this.#at = packetBytes * this.#below(this.#recording.length / packetBytes)
    this.#waiting = undefined
  }

  /** Bytes that may be changed: a packet, or what is left of it. */
  next(): Buffer {
    const waiting = this.#waiting
    this.#waiting = undefined
    return waiting ?? this.#mutate(this.#read())
  }

  #below(limit: number): number {
    return Math.floor(this.#random.next() * limit)
  }

  #read(): Buffer {
    if (this.#at + packetBytes > this.#recording.length) this.#at = 0
    this.#at += packetBytes
    return Buffer.from(this.#recording.subarray(this.#at - packetBytes, this.#at))
  }

  #mutate(packet: Buffer): Buffer {
    switch (this.#random.weighted(mutations)) {
      case 'none':
        return packet
      case 'flip':
        for (let flips = 1 + this.#below(8); flips > 0; flips -= 1) this.#flip(packet)
        return packet
      case 'drop':
        return this.#read()
      case 'repeat':
        this.#waiting = Buffer.from(packet)
        return packet
      case 'swap':
        this.#waiting = packet
        return this.#read()
      case 'truncate':
        return packet.subarray(0, 1 + this.#below(packetBytes - 1))
      case 'insert':
        return Buffer.concat([this.#garbage(1 + this.#below(400)), packet])
      case 'garbage':
        return Buffer.concat([packet.subarray(0, 4), this.#garbage(packetBytes - 4)])
      case 'otherPid':
        packet.writeUInt16BE((packet.readUInt16BE(1) & 0xe000) | this.#below(0x2000), 1)
        return packet
      case 'otherTimes':
        return this.#changeTimes(packet)
      case 'otherField':
        packet[3] = (packet[3] ?? 0) | 0x20
        packet[4] = this.#below(256)
        packet[5] = this.#below(256)
        return packet
      case 'otherTable':
        return this.#buildTable()
    }
  }

  #flip(packet: Buffer): void {
    // Most of what a stage reads is at the beginning.
    const at = this.#below(this.#random.chance(0.7) ? 32 : packetBytes)
    packet[at] = (packet[at] ?? 0) ^ (1 << this.#below(8))
  }

  #garbage(bytes: number): Buffer {
    return Buffer.from(Array.from({ length: bytes }, () => this.#below(256)))
  }

  /** The times of the first header, wherever they are, or the clock. */
  #changeTimes(packet: Buffer): Buffer {
    const header = packet.indexOf('000001', 4, 'hex')
    if (header >= 0 && header + 19 <= packetBytes && ((packet[1] ?? 0) & 0x40) !== 0)
      for (const at of [header + 9, header + 14].filter(() => this.#random.chance(0.6))) {
        packet[at] = ((packet[at] ?? 0) & 0xf1) | (this.#below(8) << 1)
        packet.writeUInt16BE(this.#below(0x8000) * 2 + 1, at + 1)
      }
    else if (((packet[3] ?? 0) & 0x20) !== 0 && (packet[4] ?? 0) >= 7) packet.writeUInt32BE(this.#below(2 ** 32), 6)
    return packet
  }

  /** A table whose sum is right, with streams of any kind. */
  #buildTable(): Buffer {
    const isPat = this.#random.chance(0.3)
    const count = this.#below(12)
    const body = isPat ? this.#garbage(4 * count) : this.#garbage(4 + 5 * count)
    // Plausible lengths, which lead on to the next stream.
    if (!isPat) for (let at = 2; at < body.length; at += 5) body[at] = 0xf0
    const section = Buffer.alloc(8 + body.length + 4)
    section[0] = isPat ? 0 : 2
    section.writeUInt16BE(0xb000 | (section.length - 3), 1)
    section.writeUInt16BE(1, 3)
    section[5] = 0xc1 | (this.#below(32) << 1)
    body.copy(section, 8)
    section.writeUInt32BE(sumOf(section.subarray(0, -4)), section.length - 4)
    const packet = Buffer.alloc(packetBytes, 0xff)
    packet.writeUInt32BE(0x47400010 | (isPat ? 0 : 0x1000 << 8) | this.#below(16), 0)
    packet[4] = 0
    section.copy(packet, 5, 0, packetBytes - 5)
    return packet
  }
}

/** CRC-32 of MPEG. */
function sumOf(bytes: Buffer): number {
  let sum = 0xffff_ffff
  for (const byte of bytes) {
    sum ^= byte << 24
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 0x8000_0000 ? (sum << 1) ^ 0x04c1_1db7 : sum << 1
  }
  return sum >>> 0
}
