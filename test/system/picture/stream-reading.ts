/**
 * Reads a whole MPEG-TS as a player does, without the code of the relay: its access units, its clocks, and every error
 * in counters and timestamps.
 */
import { hash } from 'node:crypto'

const packetBytes = 188
const syncByte = 0x47
const wrapTicks = 2 ** 33
const ticksPerMilli = 90
const pcrApartMillisMax = 100
const nullPid = 0x1fff

export type TrackKind = 'video' | 'audio'

/** A PES packet: an access unit, or some frames of audio. */
export interface Unit {
  readonly kind: TrackKind
  /** In 90 kHz ticks. */
  readonly pts: number
  readonly dts: number
  /** Of its bytes without the header. */
  readonly hash: string
  readonly isKeyFrame: boolean
  /** Of its first byte in the stream, and of the byte after its last packet. */
  readonly from: number
  readonly to: number
}

export interface StreamError {
  readonly kind:
    | 'sync'
    | 'continuity'
    | 'discontinuity flag'
    | 'PCR falls'
    | 'PCR apart'
    | 'PCR after DTS'
    | 'DTS falls'
    | 'PTS before DTS'
  /** Of the packet in the stream, in bytes. */
  readonly at: number
  readonly text: string
}

export interface Reading {
  readonly units: readonly Unit[]
  readonly errors: readonly StreamError[]
  readonly packets: number
}

/** How much later a time is, negative for an earlier one; times wrap at 33 bits. */
export function ticksBetween(earlier: number, later: number): number {
  const distance = (((later - earlier) % wrapTicks) + wrapTicks) % wrapTicks
  return distance >= wrapTicks / 2 ? distance - wrapTicks : distance
}

interface Track {
  readonly kind: TrackKind
  readonly type: number
}

interface OpenUnit {
  readonly from: number
  to: number
  readonly parts: Buffer[]
  /** Infinite for a unit that ends where the next one begins. */
  missingBytes: number
  /** The clock reference when it began. */
  readonly pcrTicks: number | undefined
  isWhole: boolean
}

class Reader {
  readonly units: Unit[] = []
  readonly errors: StreamError[] = []
  readonly #counters = new Map<number, number>()
  readonly #tracks = new Map<number, Track>()
  readonly #open = new Map<number, OpenUnit>()
  readonly #lastDts = new Map<number, number>()
  #pmtPid: number | undefined
  #pcrPid: number | undefined
  #pcrTicks: number | undefined
  #at = 0

  readPacket(packet: Buffer, at: number): void {
    this.#at = at
    if (packet[0] !== syncByte) {
      this.#fail('sync', `byte ${packet[0]}`)
      return
    }
    const pid = packet.readUInt16BE(1) & 0x1fff
    if (pid === nullPid) return
    const startsUnit = ((packet[1] ?? 0) & 0x40) !== 0
    const hasField = ((packet[3] ?? 0) & 0x20) !== 0
    const hasPayload = ((packet[3] ?? 0) & 0x10) !== 0
    const fieldBytes = hasField ? 1 + (packet[4] ?? 0) : 0
    if (fieldBytes > packetBytes - 4) {
      this.#fail('sync', `adaptation field of ${fieldBytes} bytes`)
      return
    }
    const flags = fieldBytes > 1 ? (packet[5] ?? 0) : 0
    const isFirst = !this.#counters.has(pid)
    if (flags & 0x80 && !isFirst) this.#fail('discontinuity flag', `PID ${pid}`)
    this.#count(pid, (packet[3] ?? 0) & 15, hasPayload)
    if (flags & 0x10 && pid === this.#pcrPid) this.#readPcr(packet)
    if (hasPayload) this.#readPayload(pid, packet.subarray(4 + fieldBytes), startsUnit, at)
  }

  #fail(kind: StreamError['kind'], text: string): void {
    this.errors.push({ kind, at: this.#at, text })
  }

  #count(pid: number, counter: number, hasPayload: boolean): void {
    const last = this.#counters.get(pid)
    this.#counters.set(pid, counter)
    if (last === undefined) return
    const expected = hasPayload ? (last + 1) & 15 : last
    if (counter === expected) return
    this.#fail('continuity', `PID ${pid}: ${counter} after ${last}`)
    const open = this.#open.get(pid)
    if (open) open.isWhole = false
  }

  #readPcr(packet: Buffer): void {
    const ticks = packet.readUInt32BE(6) * 2 + ((packet[10] ?? 0) >> 7) + (packet.readUInt16BE(10) & 0x1ff) / 300
    const last = this.#pcrTicks
    this.#pcrTicks = ticks
    if (last === undefined) return
    const millis = ticksBetween(last, ticks) / ticksPerMilli
    if (millis <= 0) this.#fail('PCR falls', `by ${-millis} ms`)
    else if (millis > pcrApartMillisMax) this.#fail('PCR apart', `${Math.round(millis)} ms`)
  }

  #readPayload(pid: number, payload: Buffer, startsUnit: boolean, at: number): void {
    if (pid === 0 && startsUnit) this.#readPat(payload)
    else if (pid === this.#pmtPid && startsUnit) this.#readPmt(payload)
    const track = this.#tracks.get(pid)
    if (track === undefined) return
    if (startsUnit) {
      this.#closeUnit(pid, track)
      const length = payload.length >= 6 ? payload.readUInt16BE(4) : 0
      const missingBytes = length === 0 ? Number.POSITIVE_INFINITY : 6 + length
      this.#open.set(pid, { from: at, to: at, parts: [], missingBytes, pcrTicks: this.#pcrTicks, isWhole: true })
    }
    const open = this.#open.get(pid)
    if (open === undefined) return
    open.parts.push(payload)
    open.to = at + packetBytes
    open.missingBytes -= payload.length
    if (open.missingBytes <= 0) this.#closeUnit(pid, track)
  }

  #readPat(payload: Buffer): void {
    const section = payload.subarray(1 + (payload[0] ?? 0))
    for (let at = 8; at + 4 <= section.length - 4; at += 4)
      if (section.readUInt16BE(at) !== 0) {
        this.#pmtPid = section.readUInt16BE(at + 2) & 0x1fff
        return
      }
  }

  #readPmt(payload: Buffer): void {
    const section = payload.subarray(1 + (payload[0] ?? 0))
    if (section.length < 12) return
    const end = Math.min(3 + (section.readUInt16BE(1) & 0xfff) - 4, section.length)
    const pcrPid = section.readUInt16BE(8) & 0x1fff
    if (pcrPid !== this.#pcrPid) this.#pcrTicks = undefined
    this.#pcrPid = pcrPid
    for (let at = 12 + (section.readUInt16BE(10) & 0xfff); at + 5 <= end; ) {
      const type = section[at] ?? 0
      const pid = section.readUInt16BE(at + 1) & 0x1fff
      this.#tracks.set(pid, { kind: type === 0x1b || type === 0x24 ? 'video' : 'audio', type })
      at += 5 + (section.readUInt16BE(at + 3) & 0xfff)
    }
  }

  #closeUnit(pid: number, { kind, type }: Track): void {
    const open = this.#open.get(pid)
    this.#open.delete(pid)
    if (!open?.isWhole) return
    const pes = Buffer.concat(open.parts)
    if (pes.length < 14 || pes.readUIntBE(0, 3) !== 1) return
    const length = pes.readUInt16BE(4)
    if (length !== 0 && pes.length < 6 + length) return
    const hasTimes = ((pes[7] ?? 0) & 0x80) !== 0
    if (!hasTimes) return
    const pts = readTime(pes, 9)
    const dts = (pes[7] ?? 0) & 0x40 ? readTime(pes, 14) : pts
    const payload = pes.subarray(9 + (pes[8] ?? 0), length === 0 ? undefined : 6 + length)
    this.#checkTimes(pid, pts, dts, open.pcrTicks)
    const isKeyFrame = kind === 'video' && hasKeyFrame(payload, type === 0x24)
    this.units.push({
      kind,
      pts,
      dts,
      hash: hash('sha1', payload, 'base64url'),
      isKeyFrame,
      from: open.from,
      to: open.to,
    })
  }

  #checkTimes(pid: number, pts: number, dts: number, pcrTicks: number | undefined): void {
    const last = this.#lastDts.get(pid)
    this.#lastDts.set(pid, dts)
    if (last !== undefined && ticksBetween(last, dts) <= 0)
      this.#fail('DTS falls', `PID ${pid}: by ${-ticksBetween(last, dts) / ticksPerMilli} ms`)
    if (ticksBetween(dts, pts) < 0) this.#fail('PTS before DTS', `PID ${pid}`)
    if (pcrTicks !== undefined && ticksBetween(pcrTicks, dts) < 0)
      this.#fail('PCR after DTS', `PID ${pid}: by ${-ticksBetween(pcrTicks, dts) / ticksPerMilli} ms`)
  }
}

const readTime = (data: Buffer, at: number): number =>
  ((data[at] ?? 0) & 0x0e) * 2 ** 29 + (data.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (data.readUInt16BE(at + 3) >> 1)

function hasKeyFrame(unit: Buffer, isHevc: boolean): boolean {
  for (let at = unit.indexOf('000001', 0, 'hex'); at >= 0; at = unit.indexOf('000001', at + 3, 'hex')) {
    const header = unit[at + 3] ?? 0
    const type = isHevc ? (header >> 1) & 63 : header & 31
    const isSlice = isHevc ? type < 32 : type >= 1 && type <= 5
    if (isSlice) return isHevc ? type >= 16 && type <= 21 : type === 5
  }
  return false
}

/** Where packets begin again; the end where they do not. */
function findSync(data: Buffer, from: number): number {
  for (let at = data.indexOf(syncByte, from); at >= 0; at = data.indexOf(syncByte, at + 1))
    if (data[at + packetBytes] === syncByte && data[at + 2 * packetBytes] === syncByte) return at
  return data.length
}

/** Units without a length are left out at the end, since only the next one shows that they are whole. */
export function readStream(data: Buffer): Reading {
  const reader = new Reader()
  let packets = 0
  for (let at = 0; at + packetBytes <= data.length; ) {
    reader.readPacket(data.subarray(at, at + packetBytes), at)
    packets += 1
    at = data[at] === syncByte ? at + packetBytes : findSync(data, at)
  }
  return { units: reader.units.toSorted((a, b) => a.from - b.from), errors: reader.errors, packets }
}
