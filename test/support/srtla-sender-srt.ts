/** The feedback of an SRT receiver, which an SRTLA sender reads to learn about lost packets. */

const headerBytes = 16

/** The sequence number up to which all packets arrived, if the packet is an SRT ACK. */
export function readSrtAck(datagram: Buffer): number | undefined {
  return datagram.readUInt16BE(0) === 0x8002 && datagram.length >= headerBytes + 4
    ? datagram.readUInt32BE(headerBytes)
    : undefined
}

/** The sequence numbers of lost packets, if the packet is an SRT NAK. */
export function readSrtNak(datagram: Buffer): number[] {
  if (datagram.readUInt16BE(0) !== 0x8003) return []
  const lost: number[] = []
  for (let offset = headerBytes; offset + 4 <= datagram.length; offset += 4) {
    const word = datagram.readUInt32BE(offset)
    const first = word & 0x7fff_ffff
    // A set highest bit begins a range, whose last number follows.
    const isRange = word !== first && offset + 8 <= datagram.length
    if (isRange) offset += 4
    const last = isRange ? datagram.readUInt32BE(offset) : first
    for (let number = first; number <= last && lost.length < 10_000; number += 1) lost.push(number)
  }
  return lost
}

/** Whether `number` comes before `other`. Sequence numbers have 31 bits and start again at 0. */
export const isBefore = (number: number, other: number): boolean =>
  number !== other && ((other - number) & 0x7fff_ffff) < 0x4000_0000
