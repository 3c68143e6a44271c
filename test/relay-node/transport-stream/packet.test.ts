/** Packets of MPEG-TS. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  clearDiscontinuity,
  counterOf,
  hasPayload,
  isDiscontinuity,
  isRandomAccess,
  isScrambled,
  makeNull,
  nullPackets,
  nullPid,
  packetBytes,
  packetize,
  payloadAt,
  pcrPacket,
  pidOf,
  readPcr,
  setCounter,
  setPid,
  startsUnit,
  syncByte,
  wrapTicks,
  writePcr,
} from '../../../relay-node/transport-stream/packet.ts'
import { mutatedInputs } from './mutated-inputs.ts'

const anyPcr = fc.maxSafeNat().map((n) => n % (wrapTicks * 300))

test('a unit is read back from the payloads of its packets, whatever its length', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 1, maxLength: 800 }),
      fc.nat({ max: nullPid }),
      fc.boolean(),
      fc.option(anyPcr, { nil: undefined }),
      (bytes, pid, isRandom, pcr) => {
        const unit = Buffer.from(bytes)
        const packets = packetize(
          pid,
          unit,
          pcr === undefined ? { isRandomAccess: isRandom } : { isRandomAccess: isRandom, pcr },
        )
        const offsets = Array.from({ length: packets.length / packetBytes }, (_, n) => n * packetBytes)
        const payloads = offsets.map((at) => packets.subarray(payloadAt(packets, at), at + packetBytes))
        expect(Buffer.concat(payloads)).toEqual(unit)
        expect(payloads.every((payload) => payload.length > 0)).toBe(true)
        expect(offsets.every((at) => packets[at] === syncByte && pidOf(packets, at) === pid)).toBe(true)
        expect(offsets.map((at) => startsUnit(packets, at))).toEqual(offsets.map((at) => at === 0))
        expect(offsets.map((at) => isRandomAccess(packets, at))).toEqual(offsets.map((at) => at === 0 && isRandom))
        expect(offsets.map((at) => readPcr(packets, at))).toEqual(offsets.map((at) => (at === 0 ? pcr : undefined)))
      },
    ),
  )
})

test('a PCR of 33 bits and an extension is read as it was written', () => {
  fc.assert(
    fc.property(anyPcr, anyPcr, (first, second) => {
      const packet = pcrPacket(0x100, first)
      expect(readPcr(packet, 0)).toBe(first)
      expect(hasPayload(packet, 0)).toBe(false)
      expect(payloadAt(packet, 0)).toBe(packetBytes)
      writePcr(packet, 0, second)
      expect(readPcr(packet, 0)).toBe(second)
    }),
  )
})

test('header fields change alone', () => {
  const packet = packetize(0x1abc, Buffer.alloc(400, 7))
  const original = Buffer.from(packet)
  setPid(packet, packetBytes, 0x0123)
  setCounter(packet, packetBytes, 0x1d)
  expect([pidOf(packet, packetBytes), counterOf(packet, packetBytes)]).toEqual([0x0123, 0x0d])
  expect(packet.filter((byte, n) => byte !== original[n]).length).toBe(3)
  expect(isScrambled(packet, packetBytes)).toBe(false)
})

test('the discontinuity flag of a packet is cleared, and its other flags stay', () => {
  const packet = packetize(0x100, Buffer.alloc(10), { isRandomAccess: true, pcr: 5 })
  packet[5] = (packet[5] ?? 0) | 0x80
  expect(isDiscontinuity(packet, 0)).toBe(true)
  clearDiscontinuity(packet, 0)
  expect([isDiscontinuity(packet, 0), isRandomAccess(packet, 0), readPcr(packet, 0)]).toEqual([false, true, 5])
})

test('a null packet has no unit, no adaptation field and no bytes of the packet that it replaces', () => {
  const packets = packetize(0x100, Buffer.alloc(400, 7), { pcr: 1 })
  for (let at = 0; at < packets.length; at += packetBytes) makeNull(packets, at)
  expect(packets).toEqual(nullPackets(3))
  expect(packets.subarray(0, 6).toString('hex')).toBe('471fff10ffff')
})

describe('malformed packets', () => {
  test('an adaptation field that is longer than its packet leaves no payload and no PCR', () => {
    const packet = packetize(0x100, Buffer.alloc(10), { isRandomAccess: true, pcr: 5 })
    packet[4] = 184
    expect(payloadAt(packet, 0)).toBe(packetBytes)
    expect([readPcr(packet, 0), isRandomAccess(packet, 0)]).toEqual([undefined, false])
  })

  test('whatever bytes a packet has, its payload begins within it', () => {
    const faults: string[] = []
    for (const data of mutatedInputs(packetize(0x100, Buffer.alloc(60), { isRandomAccess: true, pcr: 5 }))) {
      const at = payloadAt(data, 0)
      const pcr = readPcr(data, 0) ?? 0
      clearDiscontinuity(data, 0)
      const isWithin = at >= 4 && at <= packetBytes && pcr >= 0 && pcr < wrapTicks * 300
      if (!isWithin || isDiscontinuity(data, 0)) faults.push(data.toString('hex'))
    }
    expect(faults).toEqual([])
  })
})
