/**
 * Messages of dynamic updates (RFC 2136), signed with a shared key (TSIG, RFC 8945). No package on npm writes them:
 * `dns-packet` has neither records without data, which delete, nor signatures.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

const types = { A: 1, SOA: 6, TXT: 16, AAAA: 28, TSIG: 250, ANY: 255 } as const
export type RecordType = 'A' | 'AAAA' | 'TXT'
const classes = { IN: 1, NONE: 254, ANY: 255 } as const
const updateOpcode = 5
const fudgeSeconds = 300
const algorithm = 'hmac-sha256'

export interface TsigKey {
  readonly name: string
  readonly secret: Buffer
}

/** A condition of an update: the record set has exactly this data, or the name has no record at all. */
export type Prerequisite =
  | { readonly type: 'equals'; readonly name: string; readonly record: RecordType; readonly data: Buffer }
  | { readonly type: 'unused'; readonly name: string }

export type Change =
  | {
      readonly type: 'add'
      readonly name: string
      readonly record: RecordType
      readonly ttlSeconds: number
      readonly data: Buffer
    }
  | { readonly type: 'delete'; readonly name: string; readonly record: RecordType | 'ANY' }

export interface Update {
  readonly id: number
  readonly zone: string
  readonly prerequisites: readonly Prerequisite[]
  readonly changes: readonly Change[]
}

/** In the form of the wire, in lower case, which signatures need. */
export const encodeName = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .toLowerCase()
      .split('.')
      .filter((label) => label !== '')
      .map((label) => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)])),
    Buffer.from([0]),
  ])

/** A text of at most 255 bytes. */
export const encodeText = (text: string): Buffer =>
  Buffer.concat([Buffer.from([Buffer.byteLength(text)]), Buffer.from(text)])

const uint16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

interface ResourceRecord {
  readonly name: string
  readonly type: number
  readonly class: number
  readonly ttlSeconds?: number
  readonly data?: Buffer
}

const encodeRecord = ({ name, type, class: ofClass, ttlSeconds = 0, data = Buffer.alloc(0) }: ResourceRecord): Buffer =>
  Buffer.concat([encodeName(name), uint16(type), uint16(ofClass), uint32(ttlSeconds), uint16(data.length), data])

const prerequisiteRecord = (prerequisite: Prerequisite): ResourceRecord => {
  const { name } = prerequisite
  return prerequisite.type === 'unused'
    ? { name, type: types.ANY, class: classes.NONE }
    : { name, type: types[prerequisite.record], class: classes.IN, data: prerequisite.data }
}

const changeRecord = (change: Change): ResourceRecord => {
  const { name } = change
  return change.type === 'delete'
    ? { name, type: types[change.record], class: classes.ANY }
    : { name, type: types[change.record], class: classes.IN, ttlSeconds: change.ttlSeconds, data: change.data }
}

/** @returns the message, and its signature, which the answer's depends on. */
export function encodeUpdate(
  { id, zone, prerequisites, changes }: Update,
  key: TsigKey,
  now: Date,
): { readonly message: Buffer; readonly mac: Buffer } {
  const header = (additional: number) =>
    Buffer.concat([
      uint16(id),
      uint16(updateOpcode << 11),
      uint16(1),
      uint16(prerequisites.length),
      uint16(changes.length),
      uint16(additional),
    ])
  const body = Buffer.concat([
    encodeName(zone),
    uint16(types.SOA),
    uint16(classes.IN),
    ...prerequisites.map((prerequisite) => encodeRecord(prerequisiteRecord(prerequisite))),
    ...changes.map((change) => encodeRecord(changeRecord(change))),
  ])
  const signedAt = Math.floor(now.getTime() / 1000)
  const mac = sign(key, [header(0), body], { signedAt, fudge: fudgeSeconds, error: 0, other: Buffer.alloc(0) })
  const data = Buffer.concat([
    encodeName(algorithm),
    encodeTime(signedAt),
    uint16(fudgeSeconds),
    uint16(mac.length),
    mac,
    uint16(id),
    uint16(0),
    uint16(0),
  ])
  const signature = encodeRecord({ name: key.name, type: types.TSIG, class: classes.ANY, data })
  return { message: Buffer.concat([header(1), body, signature]), mac }
}

interface TsigVariables {
  readonly signedAt: number
  readonly fudge: number
  readonly error: number
  readonly other: Buffer
}

const encodeTime = (seconds: number): Buffer =>
  Buffer.concat([uint16(Math.floor(seconds / 2 ** 32)), uint32(seconds % 2 ** 32)])

const sign = (key: TsigKey, message: readonly Buffer[], { signedAt, fudge, error, other }: TsigVariables): Buffer =>
  createHmac('sha256', key.secret)
    .update(
      Buffer.concat([
        ...message,
        encodeName(key.name),
        uint16(classes.ANY),
        uint32(0),
        encodeName(algorithm),
        encodeTime(signedAt),
        uint16(fudge),
        uint16(error),
        uint16(other.length),
        other,
      ]),
    )
    .digest()

/** The answer is not signed by the key, or has no form that an answer has. */
export class InvalidAnswerError extends Error {
  override name = 'InvalidAnswerError'
}

/**
 * Throws {@link InvalidAnswerError}.
 * @param mac the signature of the request.
 * @returns the code of the answer: 0 for a change that was made.
 */
export function readAnswer(answer: Buffer, { id, key, mac }: { id: number; key: TsigKey; mac: Buffer }): number {
  try {
    const code = answer.readUInt16BE(2) & 0x0f
    if (answer.readUInt16BE(0) !== id) throw new InvalidAnswerError('the answer is to another request')
    const found = findSignature(answer)
    // A server that does not accept the signature cannot sign its answer.
    if (found === undefined) {
      if (code === 0) throw new InvalidAnswerError('the answer is not signed')
      return code
    }
    const { start, given, variables } = found
    const unsigned = Buffer.from(answer.subarray(0, start))
    unsigned.writeUInt16BE(unsigned.readUInt16BE(10) - 1, 10)
    const expected = sign(key, [uint16(mac.length), mac, unsigned], variables)
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      if (code !== 0 && given.length === 0) return code
      throw new InvalidAnswerError('the signature of the answer is wrong')
    }
    return code
  } catch (error) {
    if (error instanceof InvalidAnswerError) throw error
    throw new InvalidAnswerError('the answer is no message of DNS', { cause: error })
  }
}

function findSignature(answer: Buffer) {
  let at = 12
  const [questions = 0, ...records] = [4, 6, 8, 10].map((place) => answer.readUInt16BE(place))
  for (let count = 0; count < questions; count += 1) at = skipName(answer, at) + 4
  const total = records.reduce((sum, count) => sum + count, 0)
  for (let count = 1; count <= total; count += 1) {
    const start = at
    at = skipName(answer, at)
    const type = answer.readUInt16BE(at)
    const data = at + 10
    at = data + answer.readUInt16BE(at + 8)
    if (count < total || type !== types.TSIG) continue
    const time = skipName(answer, data)
    const macLength = answer.readUInt16BE(time + 8)
    const end = time + 10 + macLength
    return {
      start,
      given: answer.subarray(time + 10, end),
      variables: {
        signedAt: answer.readUInt16BE(time) * 2 ** 32 + answer.readUInt32BE(time + 2),
        fudge: answer.readUInt16BE(time + 6),
        error: answer.readUInt16BE(end + 2),
        other: answer.subarray(end + 6, end + 6 + answer.readUInt16BE(end + 4)),
      },
    }
  }
  return undefined
}

/** @returns the place after a name, which may end with a pointer. */
function skipName(answer: Buffer, from: number): number {
  let at = from
  for (;;) {
    const length = answer.readUInt8(at)
    if ((length & 0xc0) === 0xc0) return at + 2
    at += 1 + length
    if (length === 0) return at
  }
}
