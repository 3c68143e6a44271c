/**
 * Pictures of H.264 that repeat the one before them: each macroblock is skipped. A key frame and such pictures make a
 * still stream at any rate for a few hundred bytes a picture, without a decoder (ITU-T H.264, 7.3.3, 7.3.4 and 9.3).
 */
import { BitWriter } from './bits.ts'
import { attempt, payloadOf, readSliceSequence, type SliceSequence } from './sequence-parameters.ts'
import { splitUnits } from './video-units.ts'

const unitTypes = { keySlice: 5, sps: 7, pps: 8 }
const startCode = Buffer.from([0, 0, 0, 1])
/** Another access unit begins, with pictures of the types I and P. */
const delimiter = Buffer.from([0, 0, 0, 1, 0x09, 0x30])

interface PictureParameters {
  readonly id: number
  readonly usesCabac: boolean
  readonly hasBottomOrder: boolean
  readonly isWeighted: boolean
  readonly initialQuantizer: number
  readonly hasDeblockingControl: boolean
  readonly hasRedundantCount: boolean
}

export interface SkipPictures {
  /** @param number of the picture after the key frame, from 1. */
  write(number: number): Buffer
}

/** @param keyFrame an access unit with its parameter sets. @returns undefined where it cannot be repeated this way. */
export function createSkipPictures(keyFrame: Buffer): SkipPictures | undefined {
  const units = splitUnits(keyFrame)
  const find = (type: number) => units.find((unit) => ((unit[0] ?? 0) & 31) === type)
  const [sps, pps, slice] = [find(unitTypes.sps), find(unitTypes.pps), find(unitTypes.keySlice)]
  if (sps === undefined || pps === undefined || slice === undefined) return undefined
  const sequence = readSliceSequence(sps)
  const parameters = attempt(() => readPictureParameters(pps))
  if (sequence === undefined || parameters === undefined || !sequence.isFrameOnly || sequence.hasSeparatePlanes)
    return undefined
  const firstOrder = attempt(() => readKeyOrder(slice, sequence, parameters.id))
  if (firstOrder === undefined || sequence.size > macroblocksMax) return undefined
  const body = parameters.usesCabac ? skipWithCabac(sequence.size) : undefined
  return { write: (number) => writePicture({ sequence, parameters, firstOrder, body }, number) }
}

const macroblocksMax = 139_264

function readPictureParameters(pps: Buffer): PictureParameters | undefined {
  const bits = payloadOf(pps, 1)
  const id = bits.unsigned()
  bits.unsigned()
  const usesCabac = bits.flag()
  const hasBottomOrder = bits.flag()
  const hasSliceGroups = bits.unsigned() > 0
  if (hasSliceGroups) return undefined
  bits.unsigned()
  bits.unsigned()
  const isWeighted = bits.flag()
  bits.skip(2)
  const initialQuantizer = 26 + bits.signed()
  bits.signed()
  bits.signed()
  const hasDeblockingControl = bits.flag()
  bits.skip(1)
  const hasRedundantCount = bits.flag()
  return { id, usesCabac, hasBottomOrder, isWeighted, initialQuantizer, hasDeblockingControl, hasRedundantCount }
}

/** @returns the number of a key frame in the order of pictures; undefined for one of another parameter set. */
function readKeyOrder(slice: Buffer, { frameNumberBits, pictureOrder }: SliceSequence, id: number): number | undefined {
  const bits = payloadOf(slice.subarray(0, 64), 1)
  bits.unsigned()
  bits.unsigned()
  if (bits.unsigned() !== id) return undefined
  bits.skip(frameNumberBits)
  bits.unsigned()
  return pictureOrder.type === 0 ? bits.read(pictureOrder.bits) : 0
}

interface Writing {
  readonly sequence: SliceSequence
  readonly parameters: PictureParameters
  readonly firstOrder: number
  /** The macroblocks as CABAC; undefined for CAVLC. */
  readonly body: BitWriter | undefined
}

/** Any quantizer does, since no macroblock has a residual; at this one a skip is the probable symbol of CABAC. */
const quantizer = 40

function writePicture({ sequence, parameters, firstOrder, body }: Writing, number: number): Buffer {
  const { frameNumberBits, pictureOrder, chromaFormat, size } = sequence
  const bits = new BitWriter()
  // A reference picture, so that the next one repeats it.
  bits.write(0b0010_0001, 8)
  bits.unsigned(0).unsigned(5).unsigned(parameters.id)
  bits.write(number % 2 ** frameNumberBits, frameNumberBits)
  if (pictureOrder.type === 0) {
    bits.write((firstOrder + 2 * number) % 2 ** pictureOrder.bits, pictureOrder.bits)
    if (parameters.hasBottomOrder) bits.signed(0)
  } else if (pictureOrder.type === 1 && !pictureOrder.isAlwaysZero) {
    bits.signed(0)
    if (parameters.hasBottomOrder) bits.signed(0)
  }
  if (parameters.hasRedundantCount) bits.unsigned(0)
  // One reference picture, in the usual order.
  bits.write(1, 1).unsigned(0).write(0, 1)
  if (parameters.isWeighted) {
    bits.unsigned(0)
    if (chromaFormat !== 0) bits.unsigned(0)
    bits.write(0, chromaFormat === 0 ? 1 : 2)
  }
  // No marking of references.
  bits.write(0, 1)
  if (body !== undefined) bits.unsigned(0)
  bits.signed(quantizer - parameters.initialQuantizer)
  if (parameters.hasDeblockingControl) bits.unsigned(1)
  if (body === undefined) bits.unsigned(size).write(1, 1)
  else {
    while (bits.length % 8 !== 0) bits.write(1, 1)
    bits.append(body)
  }
  return Buffer.concat([delimiter, startCode, guardUnit(bits.toBuffer())])
}

/** Keeps a NAL unit free of start codes. */
function guardUnit(unit: Buffer): Buffer {
  const bytes: number[] = []
  let zeros = 0
  for (const byte of unit) {
    if (zeros >= 2 && byte <= 3) {
      bytes.push(3)
      zeros = 0
    }
    bytes.push(byte)
    zeros = byte === 0 ? zeros + 1 : 0
  }
  return Buffer.from(bytes)
}

/** Of table 9-45: the share of the improbable symbol, by the state of the context and two bits of the range. */
const improbableRanges: readonly (readonly [number, number, number, number])[] = [
  [128, 176, 208, 240],
  [128, 167, 197, 227],
  [128, 158, 187, 216],
  [123, 150, 178, 205],
  [116, 142, 169, 195],
  [111, 135, 160, 185],
  [105, 128, 152, 175],
  [100, 122, 144, 166],
  [95, 116, 137, 158],
  [90, 110, 130, 150],
  [85, 104, 123, 142],
  [81, 99, 117, 135],
  [77, 94, 111, 128],
  [73, 89, 105, 122],
  [69, 85, 100, 116],
  [66, 80, 95, 110],
  [62, 76, 90, 104],
  [59, 72, 86, 99],
  [56, 69, 81, 94],
  [53, 65, 77, 89],
  [51, 62, 73, 85],
  [48, 59, 69, 80],
  [46, 56, 66, 76],
  [43, 53, 63, 72],
  [41, 50, 59, 69],
  [39, 48, 56, 65],
  [37, 45, 54, 62],
  [35, 43, 51, 59],
  [33, 41, 48, 56],
  [32, 39, 46, 53],
  [30, 37, 43, 50],
  [29, 35, 41, 48],
  [27, 33, 39, 45],
  [26, 31, 37, 43],
  [24, 30, 35, 41],
  [23, 28, 33, 39],
  [22, 27, 32, 37],
  [21, 26, 30, 35],
  [20, 24, 29, 33],
  [19, 23, 27, 31],
  [18, 22, 26, 30],
  [17, 21, 25, 28],
  [16, 20, 23, 27],
  [15, 19, 22, 25],
  [14, 18, 21, 24],
  [14, 17, 20, 23],
  [13, 16, 19, 22],
  [12, 15, 18, 21],
  [12, 14, 17, 20],
  [11, 14, 16, 19],
  [11, 13, 15, 18],
  [10, 12, 15, 17],
  [10, 12, 14, 16],
  [9, 11, 13, 15],
  [9, 11, 12, 14],
  [8, 10, 12, 14],
  [8, 9, 11, 13],
  [7, 9, 11, 12],
  [7, 9, 10, 12],
  [7, 8, 10, 11],
  [6, 8, 9, 11],
  [6, 7, 9, 10],
  [6, 7, 8, 9],
]
/** Of table 9-13, for a skipped macroblock of a P slice with the first initialization. */
const skipContext = { slope: 23, offset: 33 }

/**
 * The macroblocks of a slice that skips all of them, with the stop bit. The neighbours of each are skipped or missing,
 * so all use the same context.
 */
function skipWithCabac(size: number): BitWriter {
  const bits = new BitWriter()
  // Above 63 the probable symbol is 1.
  let state = ((skipContext.slope * quantizer) >> 4) + skipContext.offset - 64
  let low = 0
  let range = 510
  let outstanding = 0
  let isFirst = true
  const put = (bit: number) => {
    if (isFirst) isFirst = false
    else bits.write(bit, 1)
    for (; outstanding > 0; outstanding -= 1) bits.write(1 - bit, 1)
  }
  const renormalize = () => {
    while (range < 256) {
      if (low < 256) put(0)
      else if (low >= 512) {
        low -= 512
        put(1)
      } else {
        low -= 256
        outstanding += 1
      }
      range *= 2
      low *= 2
    }
  }
  for (let macroblock = 1; macroblock <= size; macroblock += 1) {
    range -= improbableRanges[state]?.[(range >> 6) & 3] ?? 2
    state = Math.min(state + 1, 62)
    renormalize()
    // Whether the slice ends.
    range -= 2
    if (macroblock < size) renormalize()
  }
  low += range
  range = 2
  renormalize()
  put((low >> 9) & 1)
  // The last of these bits is the stop bit.
  return bits.write(((low >> 7) & 3) | 1, 2)
}
