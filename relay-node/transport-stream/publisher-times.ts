/** The times of one publisher, and the constant between them and those of the players. */
import { readPcr } from './packet.ts'
import type { PesHeader } from './pes.ts'
import type { PublishedStream } from './publisher-program.ts'
import { ticksPerMilli, ticksPerSecond, unwrapTime, wrapTime } from './stream-times.ts'

/** A step of the times of a stream that is no pause of it. */
const jumpTicksMin = ticksPerSecond
const jumpMillisMin = 1_500

export class PublisherTimes {
  /** Milliseconds, when the present data arrived. */
  now = 0
  /** Undefined before the stream was on the air, and after a jump. */
  offset: number | undefined
  /** A time near the present one. */
  near: number | undefined
  /** The last clock reference. */
  reference: number | undefined

  /** The times have jumped. */
  forget(): void {
    this.offset = undefined
    this.near = undefined
    this.reference = undefined
  }

  timeOf(header: PesHeader | undefined): number | undefined {
    const ticks = header?.dts ?? header?.pts
    if (ticks === undefined) return undefined
    this.near ??= ticks
    return unwrapTime(ticks, this.near)
  }

  /** @param isOfProgram the packet id is that of the program's clock. */
  readReference(data: Buffer, at: number, isOfProgram: boolean): void {
    const ticks = isOfProgram ? this.referenceOf(data, at) : undefined
    if (ticks !== undefined) this.reference = ticks
  }

  referenceOf(data: Buffer, at: number): number | undefined {
    const pcr = readPcr(data, at)
    if (pcr === undefined) return undefined
    const base = Math.floor(pcr / 300)
    this.near ??= base
    return unwrapTime(base, this.near) + (pcr % 300) / 300
  }
}

/** Ticks from when a unit is decoded to when it is shown. */
export function distanceOf(header: PesHeader | undefined): number {
  if (header?.pts === undefined || header.dts === undefined) return 0
  const distance = wrapTime(header.pts - header.dts)
  return distance > ticksPerSecond * 10 ? 0 : distance
}

/** Whether a unit is not where the one before it and the time of day lead to. */
export function isJump({ time: last, at }: PublishedStream, time: number, now: number): boolean {
  if (last === undefined) return false
  const ticks = time - last
  return Math.abs(ticks) > jumpTicksMin && Math.abs(ticks - (now - at) * ticksPerMilli) > jumpMillisMin * ticksPerMilli
}
