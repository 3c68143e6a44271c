/** The packets of SRT that the gate reads and writes. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  buildLossReports,
  isHandshake,
  parseAcknowledgement,
  parseHandshake,
  parseLossReport,
} from '../../relay-node/srt-packets.ts'
import {
  acknowledgement,
  conclusion,
  data,
  extension,
  handshake,
  lossReport,
  shutdown,
  streamIdExtension,
} from '../support/srt-packets.ts'

test('an induction has a socket id and no stream id', () => {
  expect(parseHandshake(handshake({ socketId: 9, version: 4 }))).toEqual({
    phase: 'induction',
    version: 4,
    isReply: false,
    socketId: 9,
    cookie: 0,
    fault: undefined,
    streamId: undefined,
    latencyMillis: 0,
  })
})

test('the stream id of a conclusion is read from any place among its extensions', () => {
  const streamId = 'publish/live/Ab12Cd34'
  const packet = conclusion({ streamId, cookie: 5, extensions: [extension(3, Buffer.alloc(40))] })
  expect(parseHandshake(packet)).toMatchObject({ phase: 'conclusion', cookie: 5, streamId })
})

test('the latency of a listener is read from its reply', () => {
  const reply = Buffer.alloc(12)
  reply.writeUInt16BE(500, 8)
  expect(parseHandshake(conclusion({ extensions: [extension(2, reply)] }))?.latencyMillis).toBe(500)
})

test('stream ids of every length are read', () => {
  const printable = fc.string({ unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)) })
  fc.assert(
    fc.property(printable, (streamId) => {
      expect(parseHandshake(conclusion({ streamId }))?.streamId).toBe(streamId.trim())
    }),
  )
})

describe('a conclusion has a fault', () => {
  test.each([
    ['with two stream ids', conclusion({ streamId: 'a', extensions: [streamIdExtension('b')] })],
    ['with a stream id above 512 bytes', conclusion({ streamId: 'a'.repeat(516) })],
    ['with a control character in its stream id', conclusion({ streamId: 'a\nb' })],
    ['with an extension that is longer than the packet', conclusion({ streamId: 'abcdefgh' }).subarray(0, -4)],
    ['with a cut extension header', Buffer.concat([conclusion({ streamId: 'abcd' }), Buffer.alloc(2)])],
    ['above the size of a datagram', conclusion({ extensions: [extension(3, Buffer.alloc(1_500))] })],
  ])('%s', (_, packet) =>
    expect(parseHandshake(packet)).toMatchObject({ fault: 'bad_request', streamId: undefined, socketId: 77 }),
  )

  test('of a version below 5', () =>
    expect(parseHandshake(conclusion({ version: 4, streamId: 'a' }))).toMatchObject({ fault: 'version' }))
})

test.each([
  ['\ufeff\u200b publish\u00a0\r\n', 'publish'],
  [' a b ', 'a b'],
  ['\n\t', ''],
])('what is invisible around a stream id is not part of it: %j', (sent, streamId) =>
  expect(parseHandshake(conclusion({ streamId: sent }))?.streamId).toBe(streamId),
)

test('an acknowledgement has the round-trip time, a light one only the sequence number', () => {
  expect(parseAcknowledgement(acknowledgement(8, 25_500))).toEqual({
    next: 8,
    rttMillis: 25.5,
    roomPackets: 0,
    packetsPerSecondMax: 0,
  })
  expect(parseAcknowledgement(acknowledgement(8, 1).subarray(0, 20))).toEqual({ next: 8, rttMillis: undefined })
})

describe('a loss report', () => {
  test('has single numbers and ranges', () => {
    expect(parseLossReport(lossReport(5, [7, 9], [0x7fff_ffff, 1]))).toEqual([
      { first: 5, last: 5 },
      { first: 7, last: 9 },
      { first: 0x7fff_ffff, last: 1 },
    ])
  })

  test.each([
    ['without numbers', lossReport()],
    ['with a range that has no end', lossReport([7, 9]).subarray(0, -4)],
    ['with a range that ends before its beginning', lossReport([9, 7])],
    ['with a range that ends in another one', lossReport([7, 0x8000_0001])],
    ['with a cut number', lossReport(5, 6).subarray(0, -1)],
  ])('%s is malformed', (_, packet) => expect(parseLossReport(packet)).toBeUndefined())

  test('is written with the header of another, in as many datagrams as it needs', () => {
    const ranges = Array.from({ length: 500 }, (_, index) => ({ first: 10 * index, last: 10 * index + (index % 2) }))
    const model = lossReport(1)
    const reports = buildLossReports(model, ranges)
    expect(reports.flatMap(parseLossReport)).toEqual(ranges)
    expect(reports.length).toBeGreaterThan(1)
    for (const report of reports) {
      expect(report.length).toBeLessThanOrEqual(data(1).length)
      expect(report.subarray(0, 16)).toEqual(model.subarray(0, 16))
    }
  })
})

test('no datagram makes a parser throw', () => {
  const packets = [
    handshake(),
    conclusion({ streamId: 'publish/live/x' }),
    data(1),
    acknowledgement(1, 1),
    lossReport([1, 2]),
    shutdown(1),
  ]
  const mutated = fc
    .tuple(fc.constantFrom(...packets), fc.array(fc.tuple(fc.nat(200), fc.nat(255))), fc.nat(200))
    .map(([packet, changes, length]) => {
      const copy = Buffer.from(packet)
      for (const [offset, value] of changes) if (offset < copy.length) copy[offset] = value
      return copy.subarray(0, length)
    })
  const random = fc.uint8Array({ maxLength: 1_600 }).map((bytes) => Buffer.from(bytes))
  fc.assert(
    fc.property(fc.oneof(mutated, random), (datagram) => {
      parseHandshake(datagram)
      parseAcknowledgement(datagram)
      parseLossReport(datagram)
      isHandshake(datagram)
    }),
    { numRuns: 5_000 },
  )
})
