/** The timeline that players see while publishers come and go. */
import { describe, expect, test } from 'vitest'
import type { OnLoss } from '../../../domain/relay/on-loss.ts'
import type { StreamFormat } from '../../../domain/relay/stream-format.ts'
import {
  makeNull,
  nullPackets,
  packetBytes,
  packetize,
  pidOf,
  syncByte,
} from '../../../relay-node/transport-stream/packet.ts'
import { crc32 } from '../../../relay-node/transport-stream/program-tables.ts'
import { Stage } from '../../../relay-node/transport-stream/stage.ts'
import { audioFormat, createPublisher, frameMillis, keyUnit, pids, readStream } from './published.ts'

const tickMillis = 40
const second = 90_000

const format: StreamFormat = {
  video: { codec: 'h264', profile: 'baseline', width: 640, height: 360, frameRate: 25 },
  audio: audioFormat,
}

function givenStage(mode: OnLoss, { slate, before }: { slate?: Buffer; before?: StreamFormat } = {}) {
  let now = 1_000
  const sent: Buffer[] = []
  const stage = new Stage({
    send: (data) => sent.push(Buffer.from(data)),
    flush: () => {},
    newestPlayer: () => 0,
    findSlate: () => slate,
    now: () => now,
  })
  stage.show({ mode, slate: null, format: before ?? null })
  stage.close()
  const wait = (millis: number) => {
    for (const until = now + millis; now < until; ) {
      now += Math.min(tickMillis, until - now)
      stage.tick()
    }
  }
  type Encoder = ReturnType<typeof createPublisher>
  return {
    stage,
    wait,
    publish(encoder: Encoder) {
      const publication = stage.publish()
      return {
        send(pictures: number, change: (packets: Buffer) => Buffer = (packets) => packets) {
          for (let n = 0; n < pictures; n += 1) {
            publication.received()
            publication.write(change(encoder.next()))
            wait(frameMillis)
          }
        },
        end: () => publication.end(),
      }
    },
    received: () => readStream(Buffer.concat(sent)),
    bytes: () => sent.reduce((sum, { length }) => sum + length, 0),
  }
}

const textsOf = (pictures: readonly { text: string }[]) => pictures.map(({ text }) => text)
const gapsOf = (times: readonly number[]) => times.slice(1).map((time, index) => time - (times[index] ?? 0))

test('the first stream passes with its own times', () => {
  const { publish, received } = givenStage('freeze')
  publish(createPublisher({ startsAt: 900_000 })).send(30)
  const { errors, pictures } = received()
  expect(errors).toEqual([])
  expect(pictures.at(0)).toEqual({ dts: 900_000, text: 'a0' })
  expect(pictures).toHaveLength(30)
})

test('a stream begins with its first key frame', () => {
  const { publish, received } = givenStage('freeze')
  publish(createPublisher({ first: 20 })).send(10)
  expect(textsOf(received().pictures)).toEqual(['a25', 'a26', 'a27', 'a28', 'a29'])
})

test('a new encoder goes on where the players are, whatever its times', () => {
  const { publish, wait, received, stage } = givenStage('freeze')
  for (const [name, startsAt] of [
    ['a', 5_000_000],
    ['b', 0],
    ['c', 2 ** 33 - 50_000],
  ] as const) {
    const publication = publish(createPublisher({ name, startsAt: startsAt + 10_000 }))
    publication.send(50)
    publication.end()
    wait(3_000)
  }
  const { errors, pictures, audio } = received()
  expect(errors).toEqual([])
  expect(stage.timeline).toMatchObject({ mode: 'freeze', segments: 3 })
  // Neither pictures nor sound have a hole.
  expect(Math.max(...gapsOf(pictures.map(({ dts }) => dts)))).toBeLessThanOrEqual(2 * 3_600)
  expect(Math.max(...gapsOf(audio))).toBeLessThanOrEqual(2 * 1_920)
  const elapsed = ((pictures.at(-1)?.dts ?? 0) - (pictures.at(0)?.dts ?? 0)) / second
  // Three times 2 s of stream and 3 s of gap: the delay of players does not grow.
  expect(elapsed).toBeGreaterThan(14.5)
  expect(elapsed).toBeLessThan(15.1)
})

test('after 500 ms players receive silence, and the last key frame at the rate of the stream', () => {
  const { publish, wait, received } = givenStage('freeze')
  publish(createPublisher()).send(90)
  const before = received()
  wait(400)
  expect(received().packets).toBe(before.packets)
  wait(2_100)
  const { pictures, audio, errors } = received()
  expect(errors).toEqual([])
  expect(audio.length - before.audio.length).toBeGreaterThan(110)
  const shown = pictures.slice(before.pictures.length)
  expect(shown.length).toBeGreaterThan(60)
  // A key frame each 0.9 s, and between them pictures that repeat it.
  expect(textsOf(shown).filter((text) => text !== '')).toEqual(['a75', 'a75', 'a75'])
})

test('with hold players receive nothing, and a whole timeline at the return', () => {
  const { publish, wait, received, bytes, stage } = givenStage('hold')
  const first = publish(createPublisher())
  first.send(30)
  first.end()
  const before = bytes()
  wait(10_000)
  expect(bytes()).toBe(before)
  publish(createPublisher({ name: 'b', startsAt: 10_000 })).send(10)
  const { errors, pictures } = received()
  expect(errors).toEqual([])
  expect(Math.max(...gapsOf(pictures.map(({ dts }) => dts)))).toBeGreaterThan(9.9 * second)
  expect(stage.timeline.filled_ms).toBe(0)
})

test('a slate is shown once it is encoded, and the last key frame where there is none', () => {
  for (const [slate, text] of [
    [keyUnit('slate'), 'slate'],
    [undefined, 'a75'],
  ] as const) {
    const { publish, wait, received } = givenStage('slate', slate === undefined ? {} : { slate })
    publish(createPublisher()).send(90)
    wait(4_000)
    const shown = textsOf(received().pictures.slice(90)).filter((each) => each !== '')
    expect(new Set(shown)).toEqual(new Set([text]))
  }
})

test('a relay that replaces another one begins with the slate', () => {
  const { publish, wait, received } = givenStage('slate', { slate: keyUnit('slate'), before: format })
  wait(1_000)
  const { pictures, audio } = received()
  expect(textsOf(pictures).at(0)).toBe('slate')
  expect(audio.length).toBeGreaterThan(30)
  publish(createPublisher()).send(30)
  const { errors, pictures: all } = received()
  expect(errors).toEqual([])
  expect(textsOf(all).at(-1)).toBe('a29')
})

test('a filler ends after half an hour', () => {
  const { publish, wait, bytes, stage } = givenStage('freeze')
  publish(createPublisher()).send(30)
  wait(30 * 60_000)
  const filled = bytes()
  wait(10_000)
  expect(bytes()).toBe(filled)
  expect(stage.timeline.filled_ms).toBeGreaterThan(29.9 * 60_000)
  expect(stage.timeline.filled_ms).toBeLessThanOrEqual(30 * 60_000)
})

test('a stream that was late by less than half a second goes on at once', () => {
  const { publish, wait, received, stage } = givenStage('freeze')
  const encoder = createPublisher({ keyEvery: 1_000 })
  const publication = publish(encoder)
  publication.send(30)
  wait(400)
  encoder.jump(0.4 * second)
  publication.send(10)
  const { errors, pictures } = received()
  expect(errors).toEqual([])
  expect(textsOf(pictures)).toEqual(Array.from({ length: 40 }, (_, n) => `a${n}`))
  expect(stage.timeline.segments).toBe(1)
})

test('a stream with missing packets goes on with its next key frame', () => {
  const { publish, wait, received } = givenStage('freeze')
  const encoder = createPublisher({ keyEvery: 40 })
  const publication = publish(encoder)
  publication.send(30)
  encoder.next()
  wait(800)
  encoder.jump(0.8 * second)
  publication.send(20)
  const { errors, pictures } = received()
  expect(errors).toEqual([])
  expect(textsOf(pictures.slice(30)).filter((text) => text !== '' && text !== 'a0')).toEqual([
    'a40',
    'a41',
    'a42',
    'a43',
    'a44',
    'a45',
    'a46',
    'a47',
    'a48',
    'a49',
    'a50',
  ])
})

test('a jump of the times of a stream is none for the players', () => {
  const { publish, received, stage } = givenStage('freeze')
  const encoder = createPublisher()
  const publication = publish(encoder)
  publication.send(50)
  encoder.jump(1_000 * second)
  publication.send(50)
  const { errors, pictures } = received()
  expect(errors).toEqual([])
  expect(pictures).toHaveLength(100)
  expect(Math.max(...gapsOf(pictures.map(({ dts }) => dts)))).toBeLessThanOrEqual(2 * 3_600)
  expect(stage.timeline.segments).toBe(2)
})

test('a later publisher takes the place of the one before with its first key frame', () => {
  const { publish, received } = givenStage('freeze')
  const [first, second] = [publish(createPublisher()), publish(createPublisher({ name: 'b', first: 24 }))]
  first.send(3)
  second.send(1)
  first.send(1)
  second.send(1)
  first.send(1)
  second.send(1)
  expect(textsOf(received().pictures)).toEqual(['a0', 'a1', 'a2', 'a3', 'b25', 'b26'])
})

describe('a stream that the relay does not understand passes as it is', () => {
  const text = Buffer.from('no transport stream '.repeat(200))
  /** As of blocks of a text that are filled up with the byte by which packets begin. */
  const filled = Buffer.alloc(5 * packetBytes, syncByte)
  filled.write('text')
  const packets = packetize(0x100, Buffer.alloc(3_000))
  const association = Buffer.from('00b0110007c10000' + '0001f000' + '0002f001' + '00000000', 'hex')
  association.writeUInt32BE(crc32(association.subarray(0, -4)), association.length - 4)
  const table = packetize(0, Buffer.concat([Buffer.from([0]), association]))
  test.each([
    ['a text', text],
    ['a text with what looks like packets', filled],
    ['packets without a program', packets],
    ['null packets', nullPackets(20)],
    ['several programs', Buffer.concat([packets, table, packets])],
  ])('%s', (_, data) => {
    const sent: Buffer[] = []
    const send = (block: Buffer) => sent.push(block)
    let now = 0
    const stage = new Stage({
      send,
      flush: () => {},
      newestPlayer: () => 0,
      findSlate: () => undefined,
      now: () => now,
    })
    const publication = stage.publish()
    publication.write(data.subarray(0, 100))
    publication.write(data.subarray(100, -packetBytes))
    now = 2_100
    publication.write(data.subarray(-packetBytes))
    publication.end()
    expect(Buffer.concat(sent).equals(data)).toBe(true)
    expect(stage.timeline.mode).toBe('untouched')
  })
})

test('little is kept of a stream whose pictures do not come', () => {
  const { publish, bytes } = givenStage('hold')
  const publisher = publish(createPublisher())
  const withoutPictures = (packets: Buffer) => {
    for (let at = 0; at < packets.length; at += packetBytes)
      if (pidOf(packets, at) === pids.video) makeNull(packets, at)
    return packets
  }
  publisher.send(100, withoutPictures)
  expect(bytes()).toBe(0)
  // What the relay cannot read passes, with what came before it as far as that is kept.
  publisher.send(1, (packets) => {
    for (let at = 0; at < packets.length; at += packetBytes) packets[at + 3] = (packets[at + 3] ?? 0) | 0x80
    return packets
  })
  expect(bytes()).toBeGreaterThan(0)
  expect(bytes()).toBeLessThan(20 * packetBytes)
})

test('blocks of players are whole while a filler is sent', () => {
  const { publish, wait, received } = givenStage('freeze')
  publish(createPublisher()).send(30)
  wait(3_000)
  expect((received().packets * packetBytes) % 1_316).toBe(0)
})

test('the format of a stream is known after some pictures', () => {
  const { publish, stage } = givenStage('freeze')
  publish(createPublisher()).send(100)
  expect(stage.format).toMatchObject({ video: { codec: 'h264', frameRate: 25 }, audio: audioFormat })
})
