import { packetBytes, syncByte } from './packet.ts'

/** So many packets in turn are no accident. */
const packetsMin = 2
const searchedPackets = 5

/** @returns undefined where the data are too short to know it. */
export function beginsWithPackets(data: Buffer): boolean | undefined {
  for (let at = 0; at < data.length && at < searchedPackets * packetBytes; at += packetBytes)
    if (data[at] !== syncByte) return false
  return data.length < packetsMin * packetBytes ? undefined : true
}

/** @returns where the next packet begins after damaged data. */
export function nextPacket(data: Buffer, after: number): number {
  for (let at = after + 1; at < data.length; at += 1) {
    if (data[at] !== syncByte) continue
    const next = at + packetBytes
    if (next >= data.length || data[next] === syncByte) return at
  }
  return data.length
}
