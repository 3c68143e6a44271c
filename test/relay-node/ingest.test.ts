/** The summary of the stream that a relay receives. */
import { expect, test } from 'vitest'
import { IngestMeter, summarizeIngest } from '../../relay-node/ingest.ts'
import { PacketLoss } from '../../relay-node/packet-loss.ts'
import type { SrtConnection } from '../../relay-node/srt-connection.ts'

const packetBytes = 1_250

/** A publisher whose packets are counted without a network. */
function createPublisher(meter: IngestMeter) {
  const sums = { dataPackets: 0, dataBytes: 0, copies: 0, repeats: 0 }
  const counters = { ...sums, lastDataAt: Number.NEGATIVE_INFINITY, loss: new PacketLoss() }
  const connection = { isOpen: true, counters: { ...counters, rttMillis: 42.04 } } as unknown as SrtConnection
  return {
    connection,
    send(packets: number, at: number, { isRetransmitted = false } = {}) {
      const { counters } = connection
      for (let n = 0; n < packets; n += 1) {
        counters.loss.receive(counters.dataPackets, isRetransmitted)
        counters.dataPackets += 1
        if (isRetransmitted) counters.repeats += 1
      }
      counters.dataBytes += packets * packetBytes
      meter.totals.receive(packets * packetBytes, at)
      counters.lastDataAt = at
    },
  }
}

const summarize = (meter: IngestMeter, connection: SrtConnection | undefined, now: number) =>
  summarizeIngest({
    meter,
    connection,
    links: 3,
    players: 1,
    stalledPlayers: 0,
    engine: 'srt-live-transmit',
    refused: {},
    lastRefused: { play: { reason: 'overload', at: now - 250 } },
    lastCallAt: now - 1_000,
    now,
  })

const always = {
  stalled_players: 0,
  last_call_age_ms: 1_000,
  last_refused: { play: { reason: 'overload', age_ms: 250 } },
}

test('a relay without a publisher has neither a bitrate nor a round-trip time', () => {
  expect(summarize(new IngestMeter(), undefined, 0)).toEqual({
    publishing: false,
    ...always,
    bitrate_kbps: 0,
    links: 0,
    players: 1,
    engine: 'srt-live-transmit',
    bytes_total: 0,
    publishing_ms_total: 0,
    peak_bitrate_kbps: 0,
    refused: {},
  })
})

test('the bitrate and the loss are those of the last two seconds', () => {
  const meter = new IngestMeter()
  const { connection, send } = createPublisher(meter)
  meter.sample(connection, 3, 0)
  // 1 Mbit/s for five seconds, then 4 Mbit/s with a tenth lost.
  for (let at = 500; at <= 5_000; at += 500) {
    send(50, at)
    meter.sample(connection, 3, at)
  }
  expect(summarize(meter, connection, 5_000)).toMatchObject({ publishing: true, bitrate_kbps: 1_000, loss_pct: 0 })
  for (let at = 5_500; at <= 8_000; at += 500) {
    send(180, at)
    send(20, at, { isRetransmitted: true })
    meter.sample(connection, 3, at)
  }
  expect(summarize(meter, connection, 8_000)).toEqual({
    publishing: true,
    ...always,
    usual_links: 3,
    // From the average of two seconds, of which the last half second had 4 Mbit/s, on its way to those.
    usual_bitrate_kbps: 1_824,
    bitrate_kbps: 4_000,
    rtt_ms: 42,
    loss_pct: 10,
    repeat_pct: 10,
    links: 3,
    players: 1,
    bytes_total: (500 + 1_200) * packetBytes,
    engine: 'srt-live-transmit',
    refused: {},
    publishing_ms_total: 7_500,
    peak_bitrate_kbps: expect.closeTo(4_000, -3),
  })
})

test('a connection without data for three seconds does not publish', () => {
  const meter = new IngestMeter()
  const { connection, send } = createPublisher(meter)
  meter.sample(connection, 3, 0)
  send(10, 100)
  expect(summarize(meter, connection, 3_000).publishing).toBe(true)
  expect(summarize(meter, connection, 3_100)).toMatchObject({ publishing: false, bitrate_kbps: 0, links: 0 })
})

test('bytes add up over publishers, and the rate of a new one starts at zero', () => {
  const meter = new IngestMeter()
  const [first, second] = [createPublisher(meter), createPublisher(meter)]
  meter.sample(first.connection, 3, 0)
  first.send(800, 1_000)
  meter.sample(first.connection, 3, 1_000)
  meter.sample(undefined, 3, 1_500)
  expect(summarize(meter, undefined, 1_500)).toMatchObject({ publishing: false, bytes_total: 800 * packetBytes })
  meter.sample(second.connection, 3, 2_000)
  second.send(100, 3_000)
  expect(summarize(meter, second.connection, 3_000)).toMatchObject({
    bitrate_kbps: 1_000,
    bytes_total: 900 * packetBytes,
  })
})
