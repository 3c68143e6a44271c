/** SRT packets of a caller and a listener, for tests without libsrt. */

export interface HandshakeOptions {
  readonly type?: number
  readonly version?: number
  readonly socketId?: number
  readonly cookie?: number
  readonly destination?: number
  readonly extensions?: readonly Buffer[]
}

export const handshakeTypes = { induction: 1, conclusion: 0xffff_ffff } as const

export function handshake(options: HandshakeOptions = {}): Buffer {
  const { type = handshakeTypes.induction, version = 5, socketId = 77, cookie = 0, destination = 0 } = options
  const packet = Buffer.alloc(64)
  packet.writeUInt16BE(0x8000, 0)
  packet.writeUInt32BE(destination, 12)
  packet.writeUInt32BE(version, 16)
  packet.writeUInt32BE(1500, 28)
  packet.writeUInt32BE(8192, 32)
  packet.writeUInt32BE(type, 36)
  packet.writeUInt32BE(socketId, 40)
  packet.writeUInt32BE(cookie, 44)
  return Buffer.concat([packet, ...(options.extensions ?? [])])
}

/** An extension of a conclusion. The content is padded to 32-bit words. */
export function extension(type: number, content: Buffer): Buffer {
  const words = Math.ceil(content.length / 4)
  const block = Buffer.alloc(4 + words * 4)
  block.writeUInt16BE(type, 0)
  block.writeUInt16BE(words, 2)
  content.copy(block, 4)
  return block
}

export function streamIdExtension(streamId: string): Buffer {
  const bytes = Buffer.from(streamId)
  const words = Buffer.alloc(Math.ceil(bytes.length / 4) * 4)
  bytes.copy(words)
  return extension(5, words.swap32())
}

export const conclusion = ({ streamId, ...options }: HandshakeOptions & { readonly streamId?: string }): Buffer =>
  handshake({
    type: handshakeTypes.conclusion,
    ...options,
    extensions: [
      extension(1, Buffer.alloc(12)),
      ...(streamId === undefined ? [] : [streamIdExtension(streamId)]),
      ...(options.extensions ?? []),
    ],
  })

/** One that an engine accepts: with the version of the library, flags and a latency, as libsrt sends them. */
export function libraryConclusion(options: HandshakeOptions & { readonly streamId: string }): Buffer {
  const packet = conclusion(options)
  packet.writeUInt16BE(5, 22)
  packet.writeUInt32BE(0x0001_0503, 64 + 4)
  packet.writeUInt32BE(0x0000_00bf, 64 + 8)
  packet.writeUInt32BE(0x0078_0078, 64 + 12)
  return packet
}

/** A data packet. */
export function data(
  sequenceNumber: number,
  options: { destination?: number; isRetransmitted?: boolean } = {},
): Buffer {
  const packet = Buffer.alloc(16 + 1316)
  packet.writeUInt32BE(sequenceNumber, 0)
  packet.writeUInt32BE(options.isRetransmitted ? 0xc400_0000 : 0xc000_0000, 4)
  packet.writeUInt32BE(options.destination ?? 0, 12)
  return packet
}

export function acknowledgement(next: number, rttMicros: number): Buffer {
  const packet = Buffer.alloc(16 + 28)
  packet.writeUInt16BE(0x8002, 0)
  packet.writeUInt32BE(next, 16)
  packet.writeUInt32BE(rttMicros, 20)
  return packet
}

/** The numbers that are missing: alone, or the first and the last one of a range. */
export function lossReport(...missing: (number | readonly [number, number])[]): Buffer {
  const words = missing.flatMap((part) => (typeof part === 'number' ? [part] : [part[0] + 0x8000_0000, part[1]]))
  const content = Buffer.alloc(4 * words.length)
  for (const [index, word] of words.entries()) content.writeUInt32BE(word, 4 * index)
  return control(3, content, { destination: 77 })
}

export function shutdown(destination: number): Buffer {
  const packet = Buffer.alloc(20)
  packet.writeUInt16BE(0x8005, 0)
  packet.writeUInt32BE(destination, 12)
  return packet
}

/** A control packet of any type. */
export function control(type: number, content: Buffer, { destination = 0, information = 0 } = {}): Buffer {
  const packet = Buffer.alloc(16)
  packet.writeUInt16BE(0x8000 + type, 0)
  packet.writeUInt32BE(information, 4)
  packet.writeUInt32BE(destination, 12)
  return Buffer.concat([packet, content])
}

/** What a receiver reads in a handshake. */
export const read = (packet: Buffer) => ({
  destination: packet.readUInt32BE(12),
  version: packet.readUInt32BE(16),
  extensions: packet.readUInt16BE(22),
  type: packet.readUInt32BE(36),
  socketId: packet.readUInt32BE(40),
  cookie: packet.readUInt32BE(44),
})
