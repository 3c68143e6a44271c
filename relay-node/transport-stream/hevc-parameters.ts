/** What slices of HEVC need of the parameter sets (ITU-T H.265, 7.3.2). */
import type { BitReader } from './bits.ts'
import { payloadOf, skipSubLayers } from './sequence-parameters.ts'

export interface HevcSequence {
  /** In pixels, without cropping. */
  readonly width: number
  readonly height: number
  readonly hasChroma: boolean
  readonly orderBits: number
  /** Sizes of coding blocks, as powers of two. */
  readonly smallestBlock: number
  readonly treeBlock: number
  readonly hasOffsetFilter: boolean
  readonly referenceSets: number
  /** Undefined without long-term references. */
  readonly longTermReferences: number | undefined
  readonly hasTemporalVectors: boolean
}

export interface HevcPicture {
  readonly id: number
  readonly hasOutputFlag: boolean
  readonly extraBits: number
  readonly hasCabacInit: boolean
  readonly initialQuantizer: number
  readonly hasChromaOffsets: boolean
  readonly isWeighted: boolean
  readonly hasBypass: boolean
  /** Each row of blocks begins with the contexts of the one above. */
  readonly isSynchronized: boolean
  readonly filtersAcrossSlices: boolean
  readonly hasDeblockingOverride: boolean
  readonly isDeblockingOff: boolean
  readonly hasHeaderExtension: boolean
}

/** @returns undefined for a format that is not supported. Throws `RangeError` where the bits do not suffice. */
export function readHevcSequence(sps: Buffer): HevcSequence | undefined {
  const bits = payloadOf(sps, 2)
  bits.skip(4)
  const subLayers = bits.read(3)
  bits.skip(1 + 96)
  skipSubLayers(bits, subLayers)
  bits.unsigned()
  const chromaFormat = bits.unsigned()
  if (chromaFormat === 3 && bits.flag()) return undefined
  const width = bits.unsigned()
  const height = bits.unsigned()
  if (bits.flag()) for (let side = 0; side < 4; side += 1) bits.unsigned()
  bits.unsigned()
  bits.unsigned()
  const orderBits = bits.unsigned() + 4
  for (let layer = bits.flag() ? 0 : subLayers; layer <= subLayers; layer += 1) skipCodes(bits, 3)
  const smallestBlock = bits.unsigned() + 3
  const treeBlock = smallestBlock + bits.unsigned()
  skipCodes(bits, 4)
  if (bits.flag() && bits.flag()) skipScalingLists(bits)
  bits.skip(1)
  const hasOffsetFilter = bits.flag()
  if (bits.flag()) {
    bits.skip(8)
    skipCodes(bits, 2)
    bits.skip(1)
  }
  const referenceSets = skipReferenceSets(bits)
  const longTermReferences = bits.flag() ? bits.unsigned() : undefined
  bits.skip((longTermReferences ?? 0) * (orderBits + 1))
  const hasTemporalVectors = bits.flag()
  if (treeBlock > 6 || orderBits > 16) return undefined
  const blocks = { smallestBlock, treeBlock }
  const references = { referenceSets, longTermReferences, hasTemporalVectors }
  return Object.assign({ width, height, hasChroma: chromaFormat !== 0, orderBits, hasOffsetFilter }, blocks, references)
}

/** @returns undefined for pictures with tiles. Throws `RangeError` where the bits do not suffice. */
export function readHevcPicture(pps: Buffer): HevcPicture | undefined {
  const bits = payloadOf(pps, 2)
  const id = bits.unsigned()
  bits.unsigned()
  bits.skip(1)
  const hasOutputFlag = bits.flag()
  const extraBits = bits.read(3)
  bits.skip(1)
  const hasCabacInit = bits.flag()
  skipCodes(bits, 2)
  const initialQuantizer = 26 + bits.signed()
  bits.skip(2)
  if (bits.flag()) bits.unsigned()
  skipCodes(bits, 2)
  const hasChromaOffsets = bits.flag()
  const isWeighted = bits.flag()
  bits.skip(1)
  const hasBypass = bits.flag()
  const hasTiles = bits.flag()
  if (hasTiles) return undefined
  const isSynchronized = bits.flag()
  const filtersAcrossSlices = bits.flag()
  const hasDeblockingControl = bits.flag()
  const hasDeblockingOverride = hasDeblockingControl && bits.flag()
  const isDeblockingOff = hasDeblockingControl && bits.flag()
  if (hasDeblockingControl && !isDeblockingOff) skipCodes(bits, 2)
  if (bits.flag()) skipScalingLists(bits)
  bits.skip(1)
  bits.unsigned()
  const hasHeaderExtension = bits.flag()
  const header = { id, hasOutputFlag, extraBits, hasCabacInit, initialQuantizer, hasChromaOffsets, isWeighted }
  const filters = { filtersAcrossSlices, hasDeblockingOverride, isDeblockingOff, hasHeaderExtension }
  return Object.assign(header, { hasBypass, isSynchronized }, filters)
}

function skipCodes(bits: BitReader, count: number): void {
  for (let n = 0; n < count; n += 1) bits.unsigned()
}

function skipScalingLists(bits: BitReader): void {
  for (let size = 0; size < 4; size += 1)
    for (let matrix = 0; matrix < 6; matrix += size === 3 ? 3 : 1) {
      if (!bits.flag()) {
        bits.unsigned()
        continue
      }
      skipCodes(bits, Math.min(64, 1 << (4 + size * 2)) + (size > 1 ? 1 : 0))
    }
}

const referenceSetsMax = 64
const referencesMax = 16

/** @returns how many there are. */
function skipReferenceSets(bits: BitReader): number {
  const count = bits.unsigned()
  if (count > referenceSetsMax) throw new RangeError('too many sets of reference pictures')
  let former = 0
  for (let set = 0; set < count; set += 1) former = skipReferenceSet(bits, set > 0, former)
  return count
}

/** @param former of the set before it. @returns how many pictures the set has. */
function skipReferenceSet(bits: BitReader, hasFormer: boolean, former: number): number {
  if (hasFormer && bits.flag()) {
    bits.skip(1)
    bits.unsigned()
    let pictures = 0
    for (let picture = 0; picture <= former; picture += 1) {
      const isUsed = bits.flag()
      if (isUsed || bits.flag()) pictures += 1
    }
    return pictures
  }
  const pictures = bits.unsigned() + bits.unsigned()
  if (pictures > referencesMax) throw new RangeError('too many reference pictures')
  for (let picture = 0; picture < pictures; picture += 1) {
    bits.unsigned()
    bits.skip(1)
  }
  return pictures
}
