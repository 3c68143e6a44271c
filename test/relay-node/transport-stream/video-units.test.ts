/** NAL units of access units. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  parameterSetsOf,
  splitUnits,
  UnitScanner,
  type VideoCodec,
} from '../../../relay-node/transport-stream/video-units.ts'
import { mutatedInputs } from './mutated-inputs.ts'

const joined = (...units: string[]) => Buffer.from(units.map((unit) => `00000001${unit}`).join(''), 'hex')
const h264Key = joined('09f0', '6742c01e', '68ce3c80', '0605ffff', '6588840a')
const hevcKey = joined('460150', '40010c01', '42010101', '4401c172', '2601af09')

const scan = (codec: VideoCodec, ...pieces: Buffer[]) => {
  const scanner = new UnitScanner(codec)
  for (const piece of pieces) scanner.push(piece, 0, piece.length)
  const { isDecided, isKeyFrame, isLeading } = scanner
  return { isDecided, isKeyFrame, isLeading }
}

describe('the kind of a picture is read from its first slice', () => {
  const key = { isDecided: true, isKeyFrame: true, isLeading: false }
  const other = { isDecided: true, isKeyFrame: false, isLeading: false }
  test.each([
    ['an IDR picture of H.264', 'h264', h264Key, key],
    ['another picture of H.264', 'h264', joined('09f0', '419a2200'), other],
    ['an intra picture of H.264 that players cannot begin with', 'h264', joined('67aa', '68aa', '419a2200'), other],
    ['an IDR picture of HEVC', 'hevc', hevcKey, key],
    ['a CRA picture of HEVC', 'hevc', joined('460150', '2a01af09'), key],
    [
      'a RASL picture of HEVC',
      'hevc',
      joined('460150', '1201af'),
      { isDecided: true, isKeyFrame: false, isLeading: true },
    ],
    ['another picture of HEVC', 'hevc', joined('0201d0'), other],
    ['parameter sets only', 'h264', joined('6742c01e'), { isDecided: false, isKeyFrame: false, isLeading: false }],
  ] as const)('%s', (_, codec, unit, expected) => {
    expect(scan(codec, unit)).toEqual(expected)
    for (let cut = 0; cut <= unit.length; cut += 1) {
      expect(scan(codec, unit.subarray(0, cut), unit.subarray(cut)), `cut at ${cut}`).toEqual(expected)
    }
    expect(scan(codec, ...Array.from(unit, (byte) => Buffer.from([byte])))).toEqual(expected)
  })
})

test('a scanner reads nothing after the first slice, until it begins another access unit', () => {
  const scanner = new UnitScanner('h264')
  scanner.push(Buffer.concat([joined('419a22'), h264Key]), 0, 100)
  scanner.push(h264Key, 0, h264Key.length)
  expect(scanner.isKeyFrame).toBe(false)
  scanner.reset()
  expect(scanner.isDecided).toBe(false)
  scanner.push(h264Key, 0, h264Key.length)
  expect(scanner.isKeyFrame).toBe(true)
})

test('an access unit is split into its units, whatever start codes they have', () => {
  const unit = Buffer.from(`0000000109f0${'000001'}6742c01e${'0000000001'}68ce3c80${'000001'}${'00000001'}6588`, 'hex')
  expect(splitUnits(unit).map((each) => each.toString('hex'))).toEqual(['09f0', '6742c01e', '68ce3c80', '6588'])
})

test('the parameter sets before the first slice are found', () => {
  const hexOf = (sets: Record<string, Buffer>) =>
    Object.fromEntries(Object.entries(sets).map(([name, set]) => [name, set.toString('hex')]))
  expect(hexOf(parameterSetsOf('h264', h264Key))).toEqual({ sps: '6742c01e', pps: '68ce3c80' })
  expect(hexOf(parameterSetsOf('hevc', hevcKey))).toEqual({ vps: '40010c01', sps: '42010101', pps: '4401c172' })
  expect(parameterSetsOf('h264', joined('419a', '6742c01e'))).toEqual({})
})

test('whatever bytes arrive, units and scans do not depend on where packets end', () => {
  const faults: string[] = []
  for (const data of mutatedInputs(h264Key, hevcKey)) {
    const codec = data.length % 2 === 0 ? 'h264' : 'hevc'
    const cut = data.length >> 1
    const whole = JSON.stringify(scan(codec, data))
    const pieces = JSON.stringify(scan(codec, data.subarray(0, cut), data.subarray(cut)))
    const isSplit = splitUnits(data).every((unit) => unit.length > 0 && !unit.includes(Buffer.from([0, 0, 1])))
    parameterSetsOf(codec, data)
    if (whole !== pieces || !isSplit) faults.push(data.toString('hex'))
  }
  expect(faults).toEqual([])
})

test('units are found again after they were joined', () => {
  const anyUnit = fc
    .uint8Array({ minLength: 1, maxLength: 9 })
    .map((bytes) => Buffer.from(bytes.map((byte) => byte | 8)))
  fc.assert(
    fc.property(fc.array(anyUnit), (units) => {
      expect(splitUnits(joined(...units.map((unit) => unit.toString('hex'))))).toEqual(units)
    }),
  )
})
