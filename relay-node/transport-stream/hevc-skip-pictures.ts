/**
 * Pictures of HEVC that repeat the one before them: each coding unit is skipped (ITU-T H.265, 7.3.6, 7.3.8 and 9.3).
 */
import { BitWriter } from './bits.ts'
import { type CabacContext, CabacEncoder, createContext } from './cabac.ts'
import { type HevcPicture, type HevcSequence, readHevcPicture, readHevcSequence } from './hevc-parameters.ts'
import type { SkipPictures } from './key-frame.ts'
import { attempt, payloadOf } from './sequence-parameters.ts'
import { guardUnit, splitUnits } from './video-units.ts'

const types = { keyMin: 16, keyMax: 21, idrMin: 19, idrMax: 20, sps: 33, pps: 34 }
const startCode = Buffer.from([0, 0, 0, 1])
/** A unit that begins a picture of the types P and I. */
const delimiter = Buffer.from([0, 0, 0, 1, 0x46, 0x01, 0x30])
/** A picture that later ones may refer to, of the lowest layer. */
const unitHeader = Buffer.from([0x02, 0x01])
const predicted = 1
const quantizer = 40
const pixelsMax = 8_192 * 4_320

/** @param keyFrame an access unit with its parameter sets. @returns undefined where it cannot be repeated this way. */
export function createHevcSkipPictures(keyFrame: Buffer): SkipPictures | undefined {
  const units = splitUnits(keyFrame)
  const typeOf = (unit: Buffer) => ((unit[0] ?? 0) >> 1) & 63
  const sps = units.find((unit) => typeOf(unit) === types.sps)
  const pps = units.find((unit) => typeOf(unit) === types.pps)
  const slice = units.find((unit) => typeOf(unit) >= types.keyMin && typeOf(unit) <= types.keyMax)
  if (sps === undefined || pps === undefined || slice === undefined) return undefined
  const sequence = attempt(() => readHevcSequence(sps))
  const picture = attempt(() => readHevcPicture(pps))
  if (sequence === undefined || picture === undefined || sequence.width * sequence.height > pixelsMax) return undefined
  const isIdr = typeOf(slice) >= types.idrMin && typeOf(slice) <= types.idrMax
  const firstOrder = attempt(() => readKeyOrder(slice, isIdr, sequence, picture))
  if (firstOrder === undefined) return undefined
  const rows = writeRows(sequence, picture)
  return { write: (number) => writePicture({ sequence, picture, rows }, firstOrder + number) }
}

/** @returns the number of a key frame in the order of pictures; undefined for one of another parameter set. */
function readKeyOrder(slice: Buffer, isIdr: boolean, { orderBits }: HevcSequence, picture: HevcPicture) {
  const bits = payloadOf(slice.subarray(0, 64), 2)
  bits.skip(2)
  if (bits.unsigned() !== picture.id) return undefined
  bits.skip(picture.extraBits)
  bits.unsigned()
  if (picture.hasOutputFlag) bits.skip(1)
  return isIdr ? 0 : bits.read(orderBits)
}

interface Writing {
  readonly sequence: HevcSequence
  readonly picture: HevcPicture
  /** The coded blocks: all of them, or where rows are synchronized each row. */
  readonly rows: readonly Buffer[]
}

function writePicture(writing: Writing, order: number): Buffer {
  const { rows } = writing
  // Bytes that keep a unit free of start codes count for the lengths of rows.
  const lengths = rows.map(({ length }) => length)
  const plain = guardUnit([writeHeader(writing, order, lengths), ...rows])
  const guardedLengths = plain.lengths.slice(1)
  const guarded = guardedLengths.every((length, index) => length === lengths[index])
    ? plain
    : guardUnit([writeHeader(writing, order, guardedLengths), ...rows])
  return Buffer.concat([delimiter, startCode, unitHeader, guarded.bytes])
}

function writeHeader({ sequence, picture }: Writing, order: number, lengths: readonly number[]): Buffer {
  const bits = new BitWriter()
  bits.write(1, 1).unsigned(picture.id).write(0, picture.extraBits).unsigned(predicted)
  if (picture.hasOutputFlag) bits.write(1, 1)
  bits.write(order % 2 ** sequence.orderBits, sequence.orderBits)
  // One reference: the picture before this one.
  bits.write(0, sequence.referenceSets > 0 ? 2 : 1)
  bits.unsigned(1).unsigned(0).unsigned(0).write(1, 1)
  if (sequence.longTermReferences !== undefined) {
    if (sequence.longTermReferences > 0) bits.unsigned(0)
    bits.unsigned(0)
  }
  if (sequence.hasTemporalVectors) bits.write(0, 1)
  if (sequence.hasOffsetFilter) bits.write(0, sequence.hasChroma ? 2 : 1)
  bits.write(1, 1).unsigned(0)
  if (picture.hasCabacInit) bits.write(0, 1)
  if (picture.isWeighted) {
    bits.unsigned(0)
    if (sequence.hasChroma) bits.signed(0)
    bits.write(0, sequence.hasChroma ? 2 : 1)
  }
  // One candidate for the vectors of a block: those of its neighbours, which are zero.
  bits.unsigned(4)
  bits.signed(quantizer - picture.initialQuantizer)
  if (picture.hasChromaOffsets) bits.signed(0).signed(0)
  if (picture.hasDeblockingOverride) bits.write(0, 1)
  if (picture.filtersAcrossSlices && !picture.isDeblockingOff) bits.write(1, 1)
  if (picture.isSynchronized) {
    const offsets = lengths.slice(0, -1)
    bits.unsigned(offsets.length)
    if (offsets.length > 0) bits.unsigned(31)
    for (const length of offsets) bits.write(length - 1, 32)
  }
  if (picture.hasHeaderExtension) bits.unsigned(0)
  return bits.write(1, 1).toBuffer()
}

interface Contexts {
  readonly split: readonly CabacContext[]
  readonly skip: readonly CabacContext[]
  readonly bypass: CabacContext
}

/** Of tables 9-7 and following, for P slices. */
const initialValues = { split: [107, 139, 126], skip: [197, 185, 201], bypass: 154 }

function createContexts(): Contexts {
  const create = (value: number) => createContext((value >> 4) * 5 - 45, ((value & 15) << 3) - 16, quantizer)
  const { split, skip, bypass } = initialValues
  return { split: split.map(create), skip: skip.map(create), bypass: create(bypass) }
}

const copyContexts = (contexts: Contexts): Contexts => structuredClone(contexts)

function writeRows({ width, height, smallestBlock, treeBlock }: HevcSequence, picture: HevcPicture): Buffer[] {
  const blockSize = 2 ** treeBlock
  const [columns, rows] = [Math.ceil(width / blockSize), Math.ceil(height / blockSize)]
  const depths = new Depths(width, smallestBlock)
  const written: Buffer[] = []
  let encoder = new CabacEncoder()
  let contexts = createContexts()
  let ofRowAbove: Contexts | undefined
  const writeUnit = (x: number, y: number, log2Size: number, depth: number): void => {
    const size = 2 ** log2Size
    const isWhole = x + size <= width && y + size <= height
    if (isWhole) {
      if (log2Size > smallestBlock) {
        const deeper = Number(depths.at(x - 1, y) > depth) + Number(depths.at(x, y - 1) > depth)
        encoder.encode(contexts.split[deeper] ?? contexts.bypass, 0)
      }
      if (picture.hasBypass) encoder.encode(contexts.bypass, 0)
      encoder.encode(contexts.skip[Number(x > 0) + Number(y > 0)] ?? contexts.bypass, 1)
      depths.set(x, y, size, depth)
      return
    }
    const half = size / 2
    for (const [left, top] of [
      [x, y],
      [x + half, y],
      [x, y + half],
      [x + half, y + half],
    ] as const)
      if (left < width && top < height) writeUnit(left, top, log2Size - 1, depth + 1)
  }
  for (let row = 0; row < rows; row += 1) {
    if (picture.isSynchronized && row > 0) {
      encoder = new CabacEncoder()
      contexts = ofRowAbove === undefined ? createContexts() : copyContexts(ofRowAbove)
      ofRowAbove = undefined
    }
    for (let column = 0; column < columns; column += 1) {
      writeUnit(column * blockSize, row * blockSize, treeBlock, 0)
      if (column === 1) ofRowAbove = copyContexts(contexts)
      const isLast = row === rows - 1 && column === columns - 1
      encoder.encodeEnd(isLast)
    }
    if (picture.isSynchronized && row < rows - 1) encoder.encodeEnd(true)
    if (picture.isSynchronized || row === rows - 1) written.push(encoder.bits.toBuffer())
  }
  return written
}

/** How often the block at a place was split. */
class Depths {
  readonly #columns: number
  readonly #log2Size: number
  readonly #depths = new Map<number, number>()

  constructor(width: number, log2Size: number) {
    this.#log2Size = log2Size
    this.#columns = Math.ceil(width / 2 ** log2Size)
  }

  /** -1 outside of the picture. */
  at(x: number, y: number): number {
    return x < 0 || y < 0 ? -1 : (this.#depths.get(this.#index(x, y)) ?? -1)
  }

  set(x: number, y: number, size: number, depth: number): void {
    const step = 2 ** this.#log2Size
    for (let top = y; top < y + size; top += step)
      for (let left = x; left < x + size; left += step) this.#depths.set(this.#index(left, top), depth)
  }

  #index(x: number, y: number): number {
    return (y >> this.#log2Size) * this.#columns + (x >> this.#log2Size)
  }
}
