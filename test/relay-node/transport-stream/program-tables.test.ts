/** Tables that name the program and elementary streams of a transport stream. */
import { expect, test } from 'vitest'
import { nullPackets, packetBytes, packetize } from '../../../relay-node/transport-stream/packet.ts'
import {
  crc32,
  type Program,
  readPat,
  readPmt,
  SectionCollector,
  writePat,
  writePmt,
} from '../../../relay-node/transport-stream/program-tables.ts'
import { mutatedInputs } from './mutated-inputs.ts'

const program: Program = {
  transportStreamId: 0x1234,
  number: 7,
  pmtPid: 0x1fff - 1,
  pcrPid: 0x101,
  descriptors: Buffer.from('0501aa', 'hex'),
  streams: [
    { pid: 0x101, type: 0x1b, descriptors: Buffer.alloc(0) },
    { pid: 0x102, type: 0x06, descriptors: Buffer.from('05044f707573', 'hex') },
  ],
}
const pat = { transportStreamId: program.transportStreamId, pmtPid: program.pmtPid }

test('a program is read as it was written', () => {
  const patPacket = packetize(0, writePat(program, 3))
  const pmtPacket = packetize(program.pmtPid, writePmt(program, 31))
  expect(readPat(new SectionCollector().push(patPacket, 0) ?? Buffer.alloc(0))).toEqual({
    transportStreamId: 0x1234,
    programs: [{ number: 7, pid: program.pmtPid }],
  })
  expect(readPmt(new SectionCollector().push(pmtPacket, 0) ?? Buffer.alloc(0), pat)).toEqual(program)
})

test('tables of ffmpeg are read, and written with the same bytes', () => {
  const patOfFfmpeg = Buffer.from('00b00d0001c100000001f0002ab104b2', 'hex')
  const pmtOfFfmpeg = Buffer.from('02b0210001c10000e100f0001be100f00006e101f00a05044f7075737f028001a3ea4534', 'hex')
  const { transportStreamId = 0, programs = [] } = readPat(patOfFfmpeg) ?? {}
  expect(programs).toEqual([{ number: 1, pid: 0x1000 }])
  const read = readPmt(pmtOfFfmpeg, { transportStreamId, pmtPid: 0x1000 })
  expect(read?.streams.map(({ pid, type }) => [pid, type])).toEqual([
    [0x100, 0x1b],
    [0x101, 0x06],
  ])
  expect(writePat(read ?? program, 0).subarray(1)).toEqual(patOfFfmpeg)
  expect(writePmt(read ?? program, 0).subarray(1)).toEqual(pmtOfFfmpeg)
})

test('a table with another bit, or one that is not valid yet, is not read', () => {
  const section = writePmt(program, 0).subarray(1)
  section[9] = (section[9] ?? 0) ^ 1
  expect(readPmt(section, pat)).toBeUndefined()
  const next = writePat(program, 0).subarray(1)
  next[5] = 0xc0
  next.writeUInt32BE(crc32(next.subarray(0, -4)), next.length - 4)
  expect(readPat(next)).toBeUndefined()
})

test('the network in a PAT is no program', () => {
  const section = writePat({ ...program, number: 0 }, 0).subarray(1)
  expect(readPat(section)?.programs).toEqual([])
})

test('a table that spans packets is collected, also from one that begins after the end of another', () => {
  const streams = Array.from({ length: 60 }, (_, n) => ({ pid: 0x200 + n, type: 3, descriptors: Buffer.alloc(8, n) }))
  const large = { ...program, streams }
  const packets = packetize(program.pmtPid, writePmt(large, 0))
  const collector = new SectionCollector()
  const read: unknown[] = []
  for (let round = 0; round < 2; round += 1) {
    for (let at = 0; at < packets.length; at += packetBytes) {
      const section = collector.push(packets, at)
      if (section !== undefined) read.push(readPmt(section, pat))
    }
  }
  expect(new SectionCollector().push(packets, 0)).toBeUndefined()
  expect(read).toEqual([large, large])

  const section = writePmt(large, 0).subarray(1)
  const pointed = Buffer.concat([Buffer.from([5]), Buffer.alloc(5), section])
  const pointedPackets = packetize(program.pmtPid, pointed)
  const sections: unknown[] = []
  for (let at = 0; at < pointedPackets.length; at += packetBytes) sections.push(collector.push(pointedPackets, at))
  expect(readPmt((sections.at(-1) as Buffer | undefined) ?? section.subarray(1), pat)).toEqual(large)
})

test('a packet in which no section begins has none', () => {
  expect(new SectionCollector().push(nullPackets(1), 0)).toBeUndefined()
  expect(new SectionCollector().push(nullPackets(1), 0)).toBeUndefined()
})

test('whatever bytes arrive, nothing throws, and a changed table is not read', () => {
  const tables = [writePat(program, 0).subarray(1), writePmt(program, 0).subarray(1)] as const
  const faults: string[] = []
  for (const data of mutatedInputs(...tables)) {
    const isAsWritten = tables.some((table) => table.equals(data))
    if (!isAsWritten && (readPat(data) ?? readPmt(data, pat)) !== undefined) faults.push(data.toString('hex'))
    // With a CRC that is right, the parser sees the changed bytes.
    if (data.length < 4) continue
    data.writeUInt32BE(crc32(data.subarray(0, -4)), data.length - 4)
    readPat(data)
    readPmt(data, pat)
  }
  const collector = new SectionCollector()
  for (const data of mutatedInputs(packetize(0, writePat(program, 0)), packetize(0x100, Buffer.alloc(400)))) {
    const section = collector.push(data, 0) ?? new SectionCollector().push(data, 0)
    if (section !== undefined && section.length > 1024) faults.push(data.toString('hex'))
  }
  expect(faults).toEqual([])
})
