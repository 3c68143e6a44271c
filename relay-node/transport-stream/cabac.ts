/** The arithmetic coder of H.264 (ITU-T H.264, 9.3.4.2) and HEVC (ITU-T H.265, 9.3.4.2), which have the same tables. */
import { BitWriter } from './bits.ts'

/** The share of the improbable symbol, by the state of the context and two bits of the range. */
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
/** The next state after the improbable symbol. */
const improbableStates: readonly number[] = [
  0, 0, 1, 2, 2, 4, 4, 5, 6, 7, 8, 9, 9, 11, 11, 12, 13, 13, 15, 15, 16, 16, 18, 18, 19, 19, 21, 21, 22, 22, 23, 24, 24,
  25, 26, 26, 27, 27, 28, 29, 29, 30, 30, 30, 31, 32, 32, 33, 33, 33, 34, 34, 35, 35, 35, 36, 36, 36, 37, 37, 37, 38,
  38,
]

/** How probable a symbol is. */
export interface CabacContext {
  state: number
  probable: number
}

/** @param slope and offset of the tables of initial values. */
export function createContext(slope: number, offset: number, quantizer: number): CabacContext {
  const value = Math.min(Math.max(((slope * quantizer) >> 4) + offset, 1), 126)
  return value > 63 ? { state: value - 64, probable: 1 } : { state: 63 - value, probable: 0 }
}

export class CabacEncoder {
  readonly #bits = new BitWriter()
  #low = 0
  #range = 510
  #outstanding = 0
  #isFirst = true

  encode(context: CabacContext, bit: number): void {
    const improbable = improbableRanges[context.state]?.[(this.#range >> 6) & 3] ?? 2
    this.#range -= improbable
    if (bit === context.probable) context.state = Math.min(context.state + 1, 62)
    else {
      this.#low += this.#range
      this.#range = improbable
      if (context.state === 0) context.probable = 1 - context.probable
      context.state = improbableStates[context.state] ?? 0
    }
    this.#renormalize()
  }

  /** Whether the slice ends here. */
  encodeEnd(isEnd: boolean): void {
    this.#range -= 2
    if (!isEnd) {
      this.#renormalize()
      return
    }
    this.#low += this.#range
    this.#range = 2
    this.#renormalize()
    this.#put((this.#low >> 9) & 1)
    // The last of these bits is the stop bit.
    this.#bits.write(((this.#low >> 7) & 3) | 1, 2)
  }

  /** After the end. */
  get bits(): BitWriter {
    return this.#bits
  }

  #put(bit: number): void {
    if (this.#isFirst) this.#isFirst = false
    else this.#bits.write(bit, 1)
    for (; this.#outstanding > 0; this.#outstanding -= 1) this.#bits.write(1 - bit, 1)
  }

  #renormalize(): void {
    while (this.#range < 256) {
      if (this.#low < 256) this.#put(0)
      else if (this.#low >= 512) {
        this.#low -= 512
        this.#put(1)
      } else {
        this.#low -= 256
        this.#outstanding += 1
      }
      this.#range *= 2
      this.#low *= 2
    }
  }
}
