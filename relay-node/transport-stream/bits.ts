/** Reads and writes bits, the highest of each byte first. */

/** Throws `RangeError` past the end. */
export class BitReader {
  readonly #data: Buffer
  #at = 0

  constructor(data: Buffer) {
    this.#data = data
  }

  get bitsLeft(): number {
    return this.#data.length * 8 - this.#at
  }

  /** @param count up to 32. */
  read(count: number): number {
    if (count > this.bitsLeft) throw new RangeError('no bits are left')
    let value = 0
    for (let n = 0; n < count; n += 1) {
      const byte = this.#data[this.#at >> 3] ?? 0
      value = value * 2 + ((byte >> (7 - (this.#at & 7))) & 1)
      this.#at += 1
    }
    return value
  }

  flag(): boolean {
    return this.read(1) === 1
  }

  skip(count: number): void {
    if (count > this.bitsLeft) throw new RangeError('no bits are left')
    this.#at += count
  }

  /** An Exp-Golomb code without a sign, as in parameter sets of video. */
  unsigned(): number {
    let zeros = 0
    while (!this.flag()) {
      zeros += 1
      if (zeros > 31) throw new RangeError('the code is too long')
    }
    return 2 ** zeros - 1 + this.read(zeros)
  }

  signed(): number {
    const code = this.unsigned()
    return code % 2 === 1 ? (code + 1) / 2 : -code / 2
  }
}

export class BitWriter {
  readonly #bits: number[] = []

  get length(): number {
    return this.#bits.length
  }

  write(value: number, count: number): this {
    for (let bit = count - 1; bit >= 0; bit -= 1) this.#bits.push((value >> bit) & 1)
    return this
  }

  /** An Exp-Golomb code without a sign. */
  unsigned(value: number): this {
    const bits = 32 - Math.clz32(value + 1)
    return this.write(0, bits - 1).write(value + 1, bits)
  }

  signed(value: number): this {
    return this.unsigned(value > 0 ? 2 * value - 1 : -2 * value)
  }

  append(other: BitWriter): this {
    for (const bit of other.#bits) this.#bits.push(bit)
    return this
  }

  /** The last byte is filled up with zeros. */
  toBuffer(): Buffer {
    const bytes = Buffer.alloc(Math.ceil(this.#bits.length / 8))
    for (const [index, bit] of this.#bits.entries())
      bytes[index >> 3] = (bytes[index >> 3] ?? 0) | (bit << (7 - (index & 7)))
    return bytes
  }
}
