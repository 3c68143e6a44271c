/** Headers of PES packets. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { wrapTicks } from '../../../relay-node/transport-stream/packet.ts'
import { buildPes, readPesHeader, writeTimestamp } from '../../../relay-node/transport-stream/pes.ts'
import { mutatedInputs } from './mutated-inputs.ts'

const anyTicks = fc.maxSafeNat().map((n) => n % wrapTicks)

test('a header is read as it was built, at any offset', () => {
  fc.assert(
    fc.property(anyTicks, fc.option(anyTicks, { nil: undefined }), fc.nat({ max: 50 }), (pts, dts, at) => {
      const payload = Buffer.from('payload')
      const pes = buildPes(dts === undefined ? { streamId: 0xe0, pts, payload } : { streamId: 0xe0, pts, dts, payload })
      const header = readPesHeader(Buffer.concat([Buffer.alloc(at), pes]), at, at + pes.length)
      expect(header).toMatchObject({ streamId: 0xe0, pts, length: pes.length - 6 })
      expect(header?.dts).toBe(dts)
      expect([header?.ptsAt, header?.dtsAt]).toEqual([at + 9, dts === undefined ? 0 : at + 14])
      expect(pes.subarray((header?.payloadAt ?? 0) - at)).toEqual(payload)
    }),
  )
})

test('a timestamp is replaced where it stands, and the bits around it stay', () => {
  fc.assert(
    fc.property(anyTicks, anyTicks, (pts, dts) => {
      const payload = Buffer.alloc(4, 9)
      const pes = buildPes({ streamId: 0xc0, pts: 1, dts: 0, payload })
      writeTimestamp(pes, 9, pts)
      writeTimestamp(pes, 14, dts)
      expect(pes).toEqual(buildPes({ streamId: 0xc0, pts, dts, payload }))
    }),
  )
})

test('the largest timestamp has the bytes of the standard', () => {
  const pes = buildPes({ streamId: 0xe0, pts: wrapTicks - 1, dts: 0x1_2345_6789, payload: Buffer.alloc(0) })
  expect(pes.toString('hex')).toBe('000001e0000d84c00a3fffffffff198d15cf13')
})

test('only video of more than 64 KiB has no length', () => {
  const payload = Buffer.alloc(70_000)
  expect(readPesHeader(buildPes({ streamId: 0xe0, pts: 0, payload }), 0, 100)?.length).toBe(0)
  expect(() => buildPes({ streamId: 0xc0, pts: 0, payload })).toThrow(RangeError)
})

test('what is no PES header, or has no place for timestamps, is not read', () => {
  const pes = buildPes({ streamId: 0xe0, pts: 5, payload: Buffer.alloc(10) })
  expect(readPesHeader(pes, 1, pes.length)).toBeUndefined()
  expect(readPesHeader(pes, 0, 13)).toBeUndefined()
  pes[3] = 0xbe
  expect(readPesHeader(pes, 0, pes.length)).toBeUndefined()
})

test('whatever bytes arrive, offsets stay within the packet', () => {
  const valid = buildPes({ streamId: 0xe0, pts: 5, dts: 4, payload: Buffer.alloc(10) })
  const faults: string[] = []
  for (const data of mutatedInputs(valid)) {
    const header = readPesHeader(data, 0, data.length)
    if (header === undefined) continue
    const { payloadAt, ptsAt, dtsAt, pts = 0, dts = 0 } = header
    const isWithin = payloadAt <= data.length && Math.max(ptsAt, dtsAt) + 5 <= payloadAt
    if (!isWithin || pts >= wrapTicks || dts >= wrapTicks) faults.push(data.toString('hex'))
  }
  expect(faults).toEqual([])
})
