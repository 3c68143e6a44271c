/** The statistics of a relay: those of the links in srtla's format, and those of the publisher in the format of irl-srt-server. */
import type { RelayEngine } from '../platform/relay-engines.ts'
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

/** A publisher in the reply to `GET /stats?publisher=…`. Scene switchers read `bitrate` in kbit/s and `rtt` in milliseconds. */
export interface PublisherStats {
  readonly bitrate: number
  readonly rtt: number
  /** Seconds. */
  readonly uptime: number
  /** Milliseconds between the publisher's clock and the output of the relay. */
  readonly latency: number
  readonly pktRcvLoss: number
  readonly pktRcvDrop: number
  /** The same as `pktRcvDrop`, under the name that some scene switchers read. */
  readonly dropped_pkts: number
  readonly mbpsRecvRate: number
}

export interface PublishersReply {
  readonly status: 'ok'
  readonly publishers: Readonly<Record<string, PublisherStats>>
}

export function showPublisher({ counters, openedAt }: SrtConnection, rates: IngestRates, now: number): PublisherStats {
  const { loss } = counters
  return {
    bitrate: rates.bitrateKbps,
    rtt: counters.rttMillis ?? 0,
    uptime: Math.floor((now - openedAt) / 1000),
    latency: counters.latencyMillis,
    pktRcvLoss: loss.recovered + loss.dropped,
    pktRcvDrop: loss.dropped,
    dropped_pkts: loss.dropped,
    mbpsRecvRate: rates.bitrateKbps / 1000,
  }
}
