/**
 * Pictures of H.264 that repeat the one before them: each macroblock is skipped. A key frame and such pictures make a
 * still stream at any rate for a few hundred bytes a picture, without a decoder (ITU-T H.264, 7.3.3, 7.3.4 and 9.3).
 */
import { BitWriter } from './bits.ts'
import { CabacEncoder, createContext } from './cabac.ts'
import type { SkipPictures } from './key-frame.ts'
import { attempt, payloadOf, readSliceSequence, type SliceSequence } from './sequence-parameters.ts'
import { guardUnit, splitUnits } from './video-units.ts'

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

/** @param keyFrame an access unit with its parameter sets. @returns undefined where it cannot be repeated this way. */
export function createH264SkipPictures(keyFrame: Buffer): SkipPictures | undefined {
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
  return Buffer.concat([delimiter, startCode, guardUnit([bits.toBuffer()]).bytes])
}

/** Of ITU-T H.264, table 9-13, for a skipped macroblock of a P slice with the first initialization. */
const skipContext = { slope: 23, offset: 33 }

/**
 * The macroblocks of a slice that skips all of them, with the stop bit. The neighbours of each are skipped or missing,
 * so all use the same context.
 */
function skipWithCabac(size: number): BitWriter {
  const encoder = new CabacEncoder()
  const context = createContext(skipContext.slope, skipContext.offset, quantizer)
  for (let macroblock = 1; macroblock <= size; macroblock += 1) {
    encoder.encode(context, 1)
    encoder.encodeEnd(macroblock === size)
  }
  return encoder.bits
}
