/** The packets of SRTLA. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  buildAck,
  buildNotice,
  buildRegistration,
  datagramBytesMax,
  parsePacket,
  readKeepaliveRtt,
} from '../../relay-node/srtla-packets.ts'

const id = Buffer.from(Array.from({ length: 256 }, (_, index) => index))
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

describe('packets have the bytes that other implementations of SRTLA use', () => {
  test('a registration is its type and the 256 bytes of the id', () => {
    expect(buildRegistration('reg1', id)).toEqual(Buffer.concat([hex('9200'), id]))
    expect(buildRegistration('reg2', id)).toEqual(Buffer.concat([hex('9201'), id]))
  })

  test('a notice is its type', () => {
    expect(buildNotice('keepalive')).toEqual(hex('9000'))
    expect(buildNotice('reg3')).toEqual(hex('9202'))
    expect(buildNotice('reg_err')).toEqual(hex('9210'))
    expect(buildNotice('reg_ngp')).toEqual(hex('9211'))
  })

  test('an ACK has its type in a word of 32 bits, followed by the sequence numbers', () => {
    expect(buildAck([1, 0x7fff_ffff])).toEqual(hex('91000000 00000001 7fffffff'))
  })
})

describe('parsing', () => {
  test('returns what was built', () => {
    const numbers = fc.array(fc.nat({ max: 0x7fff_ffff }), { maxLength: 300 })
    fc.assert(
      fc.property(numbers, (sequenceNumbers) => {
        expect(parsePacket(buildAck(sequenceNumbers))).toEqual({ kind: 'ack', sequenceNumbers })
      }),
    )
    for (const kind of ['reg1', 'reg2'] as const) {
      expect(parsePacket(buildRegistration(kind, id))).toEqual({ kind, id })
    }
    for (const kind of ['keepalive', 'reg3', 'reg_err', 'reg_ngp'] as const) {
      expect(parsePacket(buildNotice(kind))).toEqual({ kind })
    }
  })

  test('accepts notices that are padded, since some implementations send no datagrams of two bytes', () => {
    const padded = (kind: 'keepalive' | 'reg3') => Buffer.concat([buildNotice(kind), Buffer.alloc(30)])
    expect(parsePacket(padded('keepalive'))).toEqual({ kind: 'keepalive' })
    expect(parsePacket(padded('reg3'))).toEqual({ kind: 'reg3' })
  })

  test('rejects a registration of another length', () => {
    expect(parsePacket(buildRegistration('reg1', id).subarray(0, 257))).toBeUndefined()
    expect(parsePacket(Buffer.concat([buildRegistration('reg2', id), Buffer.alloc(1)]))).toBeUndefined()
  })

  test('rejects datagrams that are too short or too long for an SRT packet', () => {
    expect(parsePacket(Buffer.alloc(0))).toBeUndefined()
    expect(parsePacket(Buffer.alloc(1))).toBeUndefined()
    expect(parsePacket(Buffer.alloc(15))).toBeUndefined()
    expect(parsePacket(Buffer.alloc(datagramBytesMax + 1))).toBeUndefined()
  })

  test('returns the sequence number of an SRT data packet, and none for an SRT control packet', () => {
    expect(parsePacket(hex('7fffffff 00000000 00000000 00000000'))).toEqual({
      kind: 'srt',
      sequenceNumber: 0x7fff_ffff,
    })
    expect(parsePacket(hex('80000000 00000000 00000000 00000000'))).toEqual({ kind: 'srt' })
  })

  test('never throws, whatever the bytes', () => {
    const prefix = fc.constantFrom('', '9000', '9100', '9200', '9201', '9202', '9210', '9211', '9212', '8002', '8003')
    fc.assert(
      fc.property(prefix, fc.uint8Array({ maxLength: 2_000 }), (type, bytes) => {
        const datagram = Buffer.concat([hex(type), bytes])
        const packet = parsePacket(datagram)
        if (packet?.kind === 'reg1' || packet?.kind === 'reg2') expect(packet.id.length).toBe(256)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('the round-trip time of an extended keepalive', () => {
  // The type, the time, the magic number and the version, the id, the window, packets in flight, 45 ms, 3 and 125,000.
  const keepalive = hex('9000 0000000000001000 c01f 0001 00000007 00000014 00000002 0000002d 00000003 0001e848')

  test('is read, also from a longer one', () => {
    expect(readKeepaliveRtt(keepalive)).toBe(45)
    expect(readKeepaliveRtt(Buffer.concat([keepalive, Buffer.alloc(4)]))).toBe(45)
  })

  test.each([
    ['a plain keepalive', buildNotice('keepalive')],
    ['a shorter one', keepalive.subarray(0, -1)],
    ['one of another version', Buffer.concat([keepalive.subarray(0, 12), hex('0002'), keepalive.subarray(14)])],
    ['one with an absurd time', Buffer.concat([keepalive.subarray(0, 26), hex('ffffffff'), keepalive.subarray(30)])],
  ])('is not that of %s', (_, datagram) => expect(readKeepaliveRtt(datagram)).toBeUndefined())
})
