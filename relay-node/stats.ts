/**
 * The statistics of a relay: those of the links in srtla's format, and those of the publisher in the format of
 * irl-srt-server.
 */
import type { RelayEngine } from '../domain/relay/engines.ts'
import type { LinkReason, LinkVerdict } from '../domain/relay/links.ts'
import type { IngestRates } from './ingest.ts'
import type { SrtConnection } from './srt-connection.ts'
import type { LinkCounters } from './srtla-receiver.ts'

/** One network path of an encoder. */
export interface LinkStats {
  readonly addr: string
  readonly bytes: number
  readonly pkts: number
  /** The share of the bytes of all present links, in percent with one decimal. */
  readonly share_pct: number
  readonly last_ms_ago: number
  readonly uptime_s: number
  /** Stable while the connection lives. */
  readonly id?: string
  readonly rtt_ms?: number
  /** The longest time without a packet of the stream, in the last 10 seconds. */
  readonly gap_ms_max?: number
  /** Of its packets, those that arrived after one that was sent later. */
  readonly late_pct?: number
  /** By how much: the most of the last 10 seconds. */
  readonly late_ms?: number
  /** Of its packets, those that were sent again. */
  readonly repeat_pct?: number
  readonly verdict?: LinkVerdict
  /** Present where {@link verdict} is not `good`. */
  readonly reason?: LinkReason
}

export interface GroupStats {
  readonly id: string
  readonly conn_count: number
  /** Including removed links, so that it never decreases while a stream runs. */
  readonly total_bytes: number
  readonly connections: readonly LinkStats[]
}

export interface StatsReply {
  /** Milliseconds since 1970. */
  readonly ts: number
  /** Extends srtla's format: without an engine no stream is forwarded. */
  readonly engine: RelayEngine | 'none'
  readonly groups: readonly GroupStats[]
}

/** The group of the publisher. `id` is the port that receives it: `srtla` or `publish`. */
export function showGroup(id: string, totalBytes: number, links: readonly LinkCounters[], now: number): GroupStats {
  const present = links.reduce((sum, link) => sum + link.bytes, 0)
  return {
    id,
    conn_count: links.length,
    total_bytes: totalBytes,
    connections: links.map(({ addr, bytes, pkts, firstAt, lastAt }) => ({
      addr,
      bytes,
      pkts,
      share_pct: present === 0 ? 0 : Math.round((bytes / present) * 1000) / 10,
      last_ms_ago: Math.round(now - lastAt),
      uptime_s: Math.floor((now - firstAt) / 1000),
    })),
  }
}

/**
 * A publisher in the reply to `GET /stats?publisher=…`, in the form of irl-srt-server. Strict scene switchers need
 * every field.
 */
export interface PublisherStats {
  /** kbit/s. */
  readonly bitrate: number
  /** Milliseconds, with fractions. */
  readonly rtt: number
  /** Seconds. */
  readonly uptime: number
  /** Milliseconds between the publisher's clock and the output of the relay. */
  readonly latency: number
  /** Milliseconds of the stream that the engine holds back: the latency. */
  readonly msRcvBuf: number
  readonly pktRcvLoss: number
  readonly pktRcvDrop: number
  /** The same as `pktRcvDrop`, under the name that some scene switchers read. */
  readonly dropped_pkts: number
  /** Of packets of the mean size of the stream. */
  readonly bytesRcvLoss: number
  readonly bytesRcvDrop: number
  /** The estimated capacity of the network path; 0 before the first estimate. */
  readonly mbpsBandwidth: number
  readonly mbpsRecvRate: number
}

/** The same publisher in the form of OpenIRL's server, which newer scene switchers read. */
export interface OpenIrlPublisher {
  readonly bitrate: number
  readonly buffer: number
  readonly dropped_pkts: number
  readonly latency: number
  readonly rtt: number
  readonly uptime: number
}

export interface PublishersReply {
  readonly status: 'ok'
  readonly publishers: Readonly<Record<string, PublisherStats>>
  /** Absent while no stream comes in. */
  readonly publisher?: OpenIrlPublisher
}

/** A rate over less than a second is none, and scene switchers act on the first one. */
const listedMillisMin = 1_000

/** The reply about one publisher: none while no stream comes in, and during the first second of a stream. */
export function showPublisher(
  streamId: string,
  { counters, openedAt }: Pick<SrtConnection, 'counters' | 'openedAt'>,
  rates: IngestRates,
  now: number,
): PublishersReply {
  if (now - counters.firstDataAt < listedMillisMin) return noPublisher
  const { loss, dataBytes, dataPackets } = counters
  const packetBytes = dataBytes / Math.max(dataPackets, 1)
  const both = {
    bitrate: rates.bitrateKbps,
    rtt: counters.rttMillis ?? 0,
    uptime: Math.floor((now - openedAt) / 1000),
    latency: counters.latencyMillis,
    dropped_pkts: loss.dropped,
  }
  const lost = loss.recovered + loss.dropped
  return {
    status: 'ok',
    publishers: {
      [streamId]: {
        ...both,
        msRcvBuf: counters.latencyMillis,
        pktRcvLoss: lost,
        pktRcvDrop: loss.dropped,
        bytesRcvLoss: Math.round(lost * packetBytes),
        bytesRcvDrop: Math.round(loss.dropped * packetBytes),
        mbpsBandwidth: ((counters.packetsPerSecondMax ?? 0) * packetBytes * 8) / 1e6,
        mbpsRecvRate: rates.bitrateKbps / 1000,
      },
    },
    publisher: { ...both, buffer: counters.latencyMillis },
  }
}

export const noPublisher: PublishersReply = { status: 'ok', publishers: {} }
