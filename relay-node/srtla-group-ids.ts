/**
 * Ids of SRTLA groups that prove their origin. Anyone may ask for a group with a forged source address, so that storing
 * each requested group would let a flood of requests displace the encoder's. The receiver therefore stores nothing for
 * a request: the half of the id that it chooses contains the time, the address of the request and a message
 * authentication code, and the group is created when a link registers with the id, which only the real owner of the
 * address received.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { areEqualSecrets } from '../platform/equal-secrets.ts'
import { groupIdBytes } from './srtla-packets.ts'

const half = groupIdBytes / 2
const macAt = half + 8
const originAt = macAt + 32
const originBytesMax = groupIdBytes - originAt - 1

export interface IssuedGroup {
  /** The IP address that requested the group. */
  readonly origin: string
}

export class GroupIds {
  readonly #key: Buffer
  readonly #validMillis: number

  /** @param validMillis how long a group can be created with an id. */
  constructor(validMillis: number, key: Buffer = randomBytes(32)) {
    this.#validMillis = validMillis
    this.#key = key
  }

  /** An id that begins with the first half of `requested`. */
  issue(requested: Buffer, origin: string, now: number): Buffer {
    const id = Buffer.alloc(groupIdBytes)
    requested.copy(id, 0, 0, half)
    id.writeDoubleBE(now, half)
    id[originAt] = id.write(origin.slice(0, originBytesMax), originAt + 1, 'latin1')
    this.#authenticate(id).copy(id, macAt)
    return id
  }

  /** Returns nothing when the id was not issued here, or too long ago. */
  verify(id: Buffer, now: number): IssuedGroup | undefined {
    if (!areEqualSecrets(this.#authenticate(id), id.subarray(macAt, originAt))) return undefined
    const ageMillis = now - id.readDoubleBE(half)
    if (ageMillis < 0 || ageMillis > this.#validMillis) return undefined
    const length = id.readUInt8(originAt)
    return { origin: id.toString('latin1', originAt + 1, originAt + 1 + length) }
  }

  #authenticate(id: Buffer): Buffer {
    return createHmac('sha256', this.#key).update(id.subarray(0, macAt)).update(id.subarray(originAt)).digest()
  }
}
