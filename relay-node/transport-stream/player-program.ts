/**
 * The program that players see. Its packet ids stay while publishers come and go, since players look for the streams
 * that they found first.
 */

import { nullPid, packetize } from './packet.ts'
import { type ElementaryStream, type Program, writePat, writePmt } from './program-tables.ts'
import { isAudio, videoCodecOf } from './stream-kinds.ts'
import type { VideoCodec } from './video-units.ts'

type Role = 'video' | 'audio' | 'other' | 'clock'

/** Of ids that the publisher's streams cannot keep. */
const firstFreePid = 0x1000

export class PlayerProgram {
  #program: Program | undefined
  #version = 0
  /** The ids that streams had, in turn, by their role. */
  readonly #pids: Record<Role, number[]> = { video: [], audio: [], other: [], clock: [] }
  #tables: { readonly pat: Buffer; readonly pmt: Buffer } | undefined

  get program(): Program | undefined {
    return this.#program
  }

  /** The packets of both tables, with counters of 0. */
  get tables(): { readonly pat: Buffer; readonly pmt: Buffer } | undefined {
    return this.#tables
  }

  get video(): { readonly pid: number; readonly codec: VideoCodec } | undefined {
    for (const { pid, type } of this.#program?.streams ?? []) {
      const codec = videoCodecOf(type)
      if (codec !== undefined) return { pid, codec }
    }
    return undefined
  }

  get audioPid(): number | undefined {
    return this.#program?.streams.find(({ type, descriptors }) => isAudio(type, descriptors))?.pid
  }

  has(pid: number): boolean {
    return (
      pid === this.#program?.pmtPid ||
      pid === this.#program?.pcrPid ||
      Object.values(this.#pids).some((pids) => pids.includes(pid))
    )
  }

  /** Players see this program from now on. @returns the id of each stream for the players by that of the publisher. */
  set(program: Program): Map<number, number> {
    const first = this.#program ?? program
    const mapped = new Map<number, number>()
    const counts: Record<Role, number> = { video: 0, audio: 0, other: 0, clock: 0 }
    const streams = program.streams.map((stream) => {
      const role = roleOf(stream)
      const index = counts[role]
      counts[role] += 1
      const pid = this.#pids[role][index] ?? this.#take(role, stream.pid, first.pmtPid)
      mapped.set(stream.pid, pid)
      return { pid, type: stream.type, descriptors: stream.descriptors }
    })
    const pcrPid = mapped.get(program.pcrPid) ?? this.#clockPid(program.pcrPid, first.pmtPid)
    mapped.set(program.pcrPid, pcrPid)
    const { transportStreamId, number, pmtPid } = first
    const next = { transportStreamId, number, pmtPid, pcrPid, descriptors: program.descriptors, streams }
    if (this.#program && !writePmt(this.#program, 0).equals(writePmt(next, 0))) this.#version = (this.#version + 1) % 32
    this.#program = next
    this.#tables = {
      pat: packetize(0, writePat(next, 0)),
      pmt: packetize(pmtPid, writePmt(next, this.#version)),
    }
    return mapped
  }

  /** For a clock with packets of its own. */
  #clockPid(pid: number, pmtPid: number): number {
    return pid === nullPid ? nullPid : (this.#pids.clock[0] ?? this.#take('clock', pid, pmtPid))
  }

  #take(role: Role, wanted: number, pmtPid: number): number {
    const isTaken = (pid: number) => pid === pmtPid || this.has(pid)
    let pid = wanted
    for (let free = firstFreePid; isTaken(pid); free += 1) pid = free
    this.#pids[role].push(pid)
    return pid
  }
}

function roleOf({ type, descriptors }: ElementaryStream): Role {
  if (videoCodecOf(type) !== undefined || type === 0x01 || type === 0x02) return 'video'
  return isAudio(type, descriptors) ? 'audio' : 'other'
}
