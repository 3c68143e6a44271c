/** The video path of a relay: three UDP ports, the SRTLA receiver and the gate in front of the engine. */
import type { RelayPorts } from '../domain/relay/ports.ts'
import type { StatsAddresses } from '../domain/relay/stats-addresses.ts'
import { now } from './clock.ts'
import type { Engine } from './engine.ts'
import { IngestMeter, type IngestSummary, summarizeIngest } from './ingest.ts'
import type { Log } from './log.ts'
import type { Peer, Remote } from './peer.ts'
import { createPeerCheck } from './possible-peers.ts'
import { RefusalCounts } from './refusal-counts.ts'
import { SrtGate } from './srt-gate.ts'
import { isCall } from './srt-packets.ts'
import { SrtlaGroup } from './srtla-group.ts'
import { type LinkCounters, SrtlaReceiver } from './srtla-receiver.ts'
import {
  type GroupStats,
  noPublisher,
  type PublishersReply,
  type StatsReply,
  showBonding,
  showGroup,
  showPublisher,
} from './stats.ts'
import type { StatsSource } from './stats-server.ts'
import { findObjection, type Role } from './stream-access.ts'
import { openUdpPort, UdpPeer, type UdpPort } from './udp-port.ts'

const sweepMillis = 500

export interface DataPlaneOptions {
  /** One address of each family that the ports are bound to. */
  readonly hosts: readonly string[]
  /** Those to bind; 0 for a free one. */
  readonly ports: StreamPorts
  /** Undefined: streams are refused until {@link DataPlane.acceptStreamToken} is called. */
  readonly streamToken: string | undefined
  readonly capMbps: number
  /** Undefined: streams are refused. */
  readonly engine: Engine | undefined
  /** Whether {@link StatsSource.showStats} shows the addresses of the encoder. */
  readonly statsAddresses: StatsAddresses
  readonly log: Log
}

type StreamPorts = Pick<RelayPorts, 'srtlaPort' | 'publishPort' | 'playPort'>

export interface DataPlane extends StatsSource {
  /** Those that are bound. */
  readonly ports: StreamPorts
  /** From now on streams with this token are admitted. */
  acceptStreamToken(streamToken: string): void
  summarize(): IngestSummary
  /** Ends all connections, with a notice to their peers. */
  close(reason: string): Promise<void>
}

export async function startDataPlane({ hosts, log, ports, ...options }: DataPlaneOptions): Promise<DataPlane> {
  const { engine } = options
  const [srtlaPort, publishPort, playPort] = await Promise.all([
    openUdpPort(hosts, log, ports.srtlaPort),
    openUdpPort(hosts, log, ports.publishPort),
    openUdpPort(hosts, log, ports.playPort),
  ])
  const refused = new RefusalCounts(log)
  const srtla = new SrtlaReceiver({
    sendTo: (datagram, remote) => srtlaPort.send(datagram, remote),
    onSrtPacket: (group, datagram) => gate.receive('publish', datagram, group, now()),
    isOfStream: (datagram) => gate.publisher?.isOwnData(datagram) === true,
    // An answer would keep the links of an encoder from before a restart, which have to register again, alive.
    onStranger: (datagram) => isCall(datagram) && refused.add('srt_at_srtla_port'),
    onGroupEnded: (group) => gate.endPeer('publish', group),
  })
  const meter = new IngestMeter()
  const gate = new SrtGate({
    ...options,
    log,
    onRefused: (reason) => refused.add(reason),
    onPublisher(connection) {
      meter.sample(connection, now())
      if (connection) srtla.markAdmitted(connection.peer)
      isolateAdmitted()
    },
    onPublished: (bytes, at) => meter.totals.receive(bytes, at),
  })
  const isPossible = createPeerCheck({ hosts, ports: [srtlaPort, publishPort, playPort].map(({ port }) => port) })
  const receive = (port: UdpPort, handle: (datagram: Buffer, from: Remote) => void) =>
    port.receive((datagram, from) => {
      if (isPossible(from)) handle(datagram, from)
    })
  const passToGate = (role: Role, port: UdpPort) =>
    receive(port, (datagram, from) => gate.receive(role, datagram, new UdpPeer(port, from), now()))
  receive(srtlaPort, (datagram, from) => srtla.receive(datagram, from, now()))
  passToGate('publish', publishPort)
  passToGate('play', playPort)
  const isolateAdmitted = () => {
    const publisher = gate.publisher?.peer
    srtlaPort.isolate(publisher instanceof SrtlaGroup ? [...publisher.links.values()].map(({ remote }) => remote) : [])
    publishPort.isolate(listRemotes([publisher]))
    playPort.isolate(listRemotes(gate.players))
  }
  const showGroups = (addresses: StatsAddresses): GroupStats[] => {
    const publisher = gate.publisher
    if (publisher === undefined) return []
    const { bytes: totalBytes, latencyMillis } = publisher.counters
    const id = publisher.peer instanceof SrtlaGroup ? 'srtla' : 'publish'
    const links = listLinks(gate, srtla)
    return [showGroup({ id, totalBytes, links, latencyMillis, areAddressesShown: addresses === 'full' }, now())]
  }
  const sweep = setInterval(() => {
    srtla.sweep(now())
    gate.sweep(now())
    meter.sample(gate.publisher, now())
    isolateAdmitted()
  }, sweepMillis)

  return {
    ports: { srtlaPort: srtlaPort.port, publishPort: publishPort.port, playPort: playPort.port },
    acceptStreamToken(streamToken) {
      gate.streamToken = streamToken
    },
    summarize: () =>
      summarizeIngest({
        meter,
        connection: gate.publisher,
        links: listLinks(gate, srtla).length,
        players: gate.players.length,
        engine: engine?.name ?? 'none',
        refused: refused.list(),
        now: now(),
      }),
    showStats(): StatsReply {
      const bonding = gate.publisher?.bonding
      return {
        ts: Math.round(now()),
        engine: engine?.name ?? 'none',
        groups: showGroups(options.statsAddresses),
        ...(bonding ? { bonding: showBonding(bonding) } : {}),
      }
    },
    showLinks: () => showGroups('full').flatMap(({ connections }) => connections),
    showPublisher(streamId): PublishersReply {
      const publisher = gate.publisher
      const isKnown = findObjection('publish', streamId, gate.streamToken) === undefined
      if (!isKnown || !publisher || !meter.isPublishing(now())) return noPublisher
      return showPublisher(streamId, publisher, meter.rates(now()), now())
    },
    async close(reason) {
      clearInterval(sweep)
      gate.close(reason)
      await Promise.all([srtlaPort.close(), publishPort.close(), playPort.close(), engine?.close()])
    },
  }
}

const listRemotes = (peers: readonly (Peer | undefined)[]): Remote[] =>
  peers.filter((peer) => peer instanceof UdpPeer).map(({ remote }) => remote)

/** The links of the publisher: those of its SRTLA group, or its only address. */
function listLinks(gate: SrtGate, srtla: SrtlaReceiver): LinkCounters[] {
  const publisher = gate.publisher
  if (publisher === undefined) return []
  if (publisher.peer instanceof SrtlaGroup) return srtla.links(now())
  const { bytes, datagrams: pkts, lastAt } = publisher.counters
  return [
    {
      id: `publisher-${Math.round(publisher.openedAt)}`,
      addr: publisher.peer.key,
      bytes,
      pkts,
      firstAt: publisher.openedAt,
      lastAt,
    },
  ]
}
