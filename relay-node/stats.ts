/**
 * The statistics of a relay: those of the links in srtla's format, and those of the publisher in the format of
 * irl-srt-server.
 */
import type { RelayEngine } from '../domain/relay/engines.ts'
import { judgeLinks, type LinkJudgement, type LinkReason, type LinkVerdict } from '../domain/relay/links.ts'
import { maskAddress } from './addresses.ts'
import type { TimelineStats } from './engine.ts'
import type { IngestRates } from './ingest.ts'
import type { LossReportCounters } from './loss-reports.ts'
import type { SrtConnection } from './srt-connection.ts'
import type { GroupReading } from './srtla-group.ts'
import type { LinkCounters } from './srtla-receiver.ts'

/** One network path of an encoder. */
export interface LinkStats {
  /** Extends srtla's format. Stable while the link is registered. */
  readonly id: string
  /** The host is masked, unless the relay is set to show it. */
  readonly addr: string
  readonly bytes: number
  readonly pkts: number
  /** The share of the bytes of all present links, in percent with one decimal. */
  readonly share_pct: number
  readonly last_ms_ago: number
  readonly uptime_s: number
  readonly rtt_ms?: number
  /** The longest time without a datagram, in the last 10 seconds. */
  readonly gap_ms_max?: number
  /** Of its packets, those that arrived after one that was sent later. */
  readonly late_pct?: number
  /** By how much its packets arrived later, in the mean of all. */
  readonly late_ms?: number
  /** Of its packets, those that were lost and sent again. */
  readonly repeat_pct?: number
  readonly verdict?: LinkVerdict
  /** Present where the verdict is not `good`. */
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
  readonly timeline: TimelineStats
  /** Of an SRTLA publisher. */
  readonly bonding?: BondingStats
}

/** Of an engine that does not repair timelines, and without one. */
export const noTimeline: TimelineStats = { mode: 'off', segments: 0, filled_ms: 0 }

/** What was done about packets that the engine took for lost. */
export interface BondingStats {
  readonly held: number
  /** Of these, the encoder was asked to send them again. */
  readonly reported: number
  /** Of these, they arrived without that. */
  readonly saved: number
  /** The most by which a packet arrived later than one that was sent after it, in the last 10 seconds. */
  readonly lateness_ms: number
}

export const showBonding = ({ held, reported, saved, latenessMillis }: LossReportCounters): BondingStats => ({
  held,
  reported,
  saved,
  lateness_ms: Math.round(latenessMillis),
})

export interface ShownGroup {
  /** The port that receives the publisher: `srtla` or `publish`. */
  readonly id: string
  readonly totalBytes: number
  readonly links: readonly LinkCounters[]
  /** Of the publisher's connection. */
  readonly latencyMillis: number
  readonly areAddressesShown: boolean
}

/** The group of the publisher. */
export function showGroup({ id, totalBytes, links, ...shown }: ShownGroup, now: number): GroupStats {
  const present = links.reduce((sum, link) => sum + link.bytes, 0)
  const verdicts = judge(links, shown.latencyMillis, now)
  return {
    id,
    conn_count: links.length,
    total_bytes: totalBytes,
    connections: links.map((link) => ({
      id: link.id,
      addr: shown.areAddressesShown ? link.addr : maskAddress(link.addr),
      bytes: link.bytes,
      pkts: link.pkts,
      share_pct: percentOf(link.bytes, present),
      last_ms_ago: Math.round(now - link.lastAt),
      uptime_s: Math.floor((now - link.firstAt) / 1000),
      ...(link.reading ? showReading(link.reading) : {}),
      ...verdicts.get(link),
    })),
  }
}

const percentOf = (part: number, whole: number): number => (whole === 0 ? 0 : Math.round((part / whole) * 1000) / 10)

const showReading = ({ rttMillis, gapMillisMax, late, lateMillis, lost }: GroupReading) => ({
  ...(rttMillis === undefined ? {} : { rtt_ms: rttMillis }),
  gap_ms_max: Math.round(gapMillisMax),
  late_pct: percentOf(late, 1),
  late_ms: Math.round(lateMillis),
  ...(lost === undefined ? {} : { repeat_pct: percentOf(lost, 1) }),
})

/** The verdicts about those links of which something was measured. */
function judge(links: readonly LinkCounters[], latencyMillis: number, now: number): Map<LinkCounters, LinkJudgement> {
  const measured = links.flatMap((link) =>
    link.reading
      ? [{ link, facts: { ...link.reading, uptimeMillis: now - link.firstAt, silentMillis: now - link.lastAt } }]
      : [],
  )
  const judgements = judgeLinks(
    measured.map(({ facts }) => facts),
    latencyMillis,
  )
  return new Map(measured.map(({ link }, index) => [link, judgements[index] ?? { verdict: 'good' }]))
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

/**
 * The reply about one publisher, under the name that was asked for: none while no stream comes in, and during the first
 * second of a stream.
 */
export function showPublisher(
  name: string,
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
      [name]: {
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
