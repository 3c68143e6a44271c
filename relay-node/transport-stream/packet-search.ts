import { packetBytes, syncByte } from './packet.ts'

/** So many packets in turn are no accident. */
const packetsMin = 2
const searchedPackets = 5

/** @returns where packets of MPEG-TS begin; `undecided` where the data are too short; `none` where they have none. */
export function findPackets(data: Buffer): number | 'undecided' | 'none' {
  if (data.length < packetsMin * packetBytes) return 'undecided'
  for (let begin = 0; begin < packetBytes; begin += 1) {
    let count = 0
    for (let at = begin; at < data.length && count < searchedPackets; at += packetBytes) {
      if (data[at] !== syncByte) {
        count = 0
        break
      }
      count += 1
    }
    if (count >= packetsMin) return begin
  }
  return 'none'
}
