/** Sequence numbers of SRT data packets have 31 bits and start again at 0. */

export const sequenceMask = 0x7fff_ffff
/** Of SRT, in packets: no more are under way. */
export const flowWindow = 8_192
/** Above the flow window, so that a number is still remembered when it is acknowledged. A power of 2. */
export const rememberedMax = 65_536
/** A jump that no loss explains. */
export const jumpMax = rememberedMax / 2

/** How far `to` is ahead of `from`; negative when it is behind. */
export function distanceBetween(from: number, to: number): number {
  const ahead = (to - from) & sequenceMask
  return ahead > sequenceMask / 2 ? ahead - sequenceMask - 1 : ahead
}

/** The number that is `count` ahead. */
export const advance = (number: number, count: number): number => (number + count) & sequenceMask

/** From the first number to the last one, both included. */
export interface NumberRange {
  readonly first: number
  readonly last: number
}

/** @param numbers in ascending order. */
export function toRanges(numbers: readonly number[]): NumberRange[] {
  const ranges: { first: number; last: number }[] = []
  for (const number of numbers) {
    const range = ranges.at(-1)
    if (range !== undefined && advance(range.last, 1) === number) range.last = number
    else ranges.push({ first: number, last: number })
  }
  return ranges
}
