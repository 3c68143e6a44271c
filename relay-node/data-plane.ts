/** The video path of a relay: three UDP ports, the SRTLA receiver and the gate in front of the engine. */
import type { RelayPorts } from '../domain/relay/ports.ts'
import type { RelayRefusal } from '../domain/relay/refusals.ts'
import type { StatsAddresses } from '../domain/relay/stats-addresses.ts'
import type { StreamFormat } from '../domain/relay/stream-format.ts'
import { type Admission, findPlayKey } from './admission.ts'
import { now } from './clock.ts'
import type { Engine } from './engine.ts'
import { IngestMeter, type IngestSummary, summarizeIngest } from './ingest.ts'
import type { Log } from './log.ts'
import { PathEvents } from './path-events.ts'
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
  noTimeline,
  type PublishersReply,
  type StatsReply,
  showBonding,
  showGroup,
  showPublisher,
} from './stats.ts'
import type { StatsSource } from './stats-server.ts'
import { judgeAccess, type Role } from './stream-access.ts'
import { StreamEvents } from './stream-events.ts'
import { openUdpPort, UdpPeer, type UdpPort } from './udp-port.ts'

const sweepMillis = 500
const judgeMillis = 250
/** A link that is quiet for longer is not in use. Encoders send keepalives every second. */
const quietLinkMillisMax = 2_200

export interface DataPlaneOptions {
  /** One address of each family that the ports are bound to. */
  readonly hosts: readonly string[]
  /** Those to bind; 0 for a free one. */
  readonly ports: StreamPorts
  /** Undefined: streams are refused until {@link DataPlane.admit} is called. */
  readonly admission: Admission | undefined
  readonly capMbps: number
  /** The bitrate below which a stream is weak. */
  readonly streamWeakKbps: number
  /** Undefined: streams are refused. */
  readonly engine: Engine | undefined
  /** Whether {@link StatsSource.showStats} shows the addresses of the encoder. */
  readonly statsAddresses: StatsAddresses
  readonly log: Log
}

type StreamPorts = Pick<RelayPorts, 'srtlaPort' | 'publishPort' | 'playPort'>

export interface DataPlane extends StatsSource {
  /** Those that are bound. */
  ports(): StreamPorts
  /** Changes the ports of a relay that has no stream. Rejects, and changes nothing, when one of them is taken. */
  takePorts(wanted: StreamPorts): Promise<void>
  /** Admits by this from now on, closes the connections that it would not admit, and shows the players its picture. */
  admit(admission: Admission): void
  /** The revision of what the relay admits by; null for none. */
  admissionRevision(): number | null
  /** By {@link SrtGate.takeUsedPlayKeys}. */
  takeUsedPlayKeys(): string[]
  readonly streamEvents: StreamEvents
  readonly pathEvents: PathEvents
  summarize(): IngestSummary
  /** By {@link Engine.streamFormat}. */
  streamFormat(): StreamFormat | undefined
  /** Ends all connections, with a notice to their peers. */
  close(reason: string): Promise<void>
}

interface OpenPorts {
  readonly srtla: UdpPort
  readonly publish: UdpPort
  readonly play: UdpPort
}

const openPortNames = ['srtla', 'publish', 'play'] as const

const portsOf = ({ srtla, publish, play }: OpenPorts): StreamPorts => ({
  srtlaPort: srtla.port,
  publishPort: publish.port,
  playPort: play.port,
})

/**
 * Opens all three ports, or none.
 * @param present ports that are open already, which stay open.
 */
async function openPorts(
  hosts: readonly string[],
  log: Log,
  wanted: StreamPorts,
  present?: OpenPorts,
): Promise<OpenPorts> {
  const open = (name: keyof OpenPorts, port: number) =>
    present && present[name].port === port ? Promise.resolve(present[name]) : openUdpPort(hosts, log, port)
  const results = await Promise.allSettled([
    open('srtla', wanted.srtlaPort),
    open('publish', wanted.publishPort),
    open('play', wanted.playPort),
  ])
  const [srtla, publish, play] = results.map((result) => (result.status === 'fulfilled' ? result.value : undefined))
  if (srtla && publish && play) return { srtla, publish, play }
  const fresh = [srtla, publish, play].filter((port) => port && !Object.values(present ?? {}).includes(port))
  await Promise.all(fresh.map((port) => port?.close()))
  throw results.find((result) => result.status === 'rejected')?.reason
}

export async function startDataPlane({ hosts, log, ports, ...options }: DataPlaneOptions): Promise<DataPlane> {
  const { engine } = options
  let opened = await openPorts(hosts, log, ports)
  const refused = new RefusalCounts(log)
  const pathEvents = new PathEvents()
  const refuse = (reason: RelayRefusal, role: Role) => {
    refused.add(reason, role, now())
    // Without an admission there is no session yet whose signal path this would be.
    if (gate.admission !== undefined) pathEvents.refuse(reason, role)
  }
  const srtla = new SrtlaReceiver({
    sendTo: (datagram, remote) => opened.srtla.send(datagram, remote),
    onSrtPacket: (group, datagram) => gate.receive('publish', datagram, group, now()),
    isOfStream: (datagram) => gate.publisher?.isOwnData(datagram) === true,
    // An answer would keep the links of an encoder from before a restart, which have to register again, alive.
    onStranger: (datagram) => isCall(datagram) && refuse('srt_at_srtla_port', 'publish'),
    onGroupEnded: (group) => gate.endPeer('publish', group),
  })
  const meter = new IngestMeter()
  const streamEvents = new StreamEvents(options.streamWeakKbps)
  const gate = new SrtGate({
    ...options,
    log,
    onRefused: refuse,
    onPublisher(connection) {
      meter.sample(connection, countActiveLinks(), now())
      if (connection) srtla.markAdmitted(connection.peer)
      isolateAdmitted()
    },
    onPublished: (bytes, at) => meter.totals.receive(bytes, at),
  })
  const receiveFrom = ({ srtla: srtlaPort, publish, play }: OpenPorts) => {
    const isPossible = createPeerCheck({ hosts, ports: [srtlaPort, publish, play].map(({ port }) => port) })
    const receive = (port: UdpPort, handle: (datagram: Buffer, from: Remote) => void) =>
      port.receive((datagram, from) => {
        if (isPossible(from)) handle(datagram, from)
      })
    const passToGate = (role: Role, port: UdpPort) =>
      receive(port, (datagram, from) => gate.receive(role, datagram, new UdpPeer(port, from), now()))
    receive(srtlaPort, (datagram, from) => srtla.receive(datagram, from, now()))
    passToGate('publish', publish)
    passToGate('play', play)
  }
  receiveFrom(opened)
  if (options.admission !== undefined) engine?.showOnLoss?.(options.admission.lossPicture)
  const isolateAdmitted = () => {
    const publisher = gate.publisher?.peer
    const isBonded = publisher instanceof SrtlaGroup
    opened.srtla.isolate(isBonded ? [...publisher.links.values()].map(({ remote }) => remote) : [])
    opened.publish.isolate(listRemotes([publisher]))
    opened.play.isolate(listRemotes(gate.players.map(({ peer }) => peer)))
  }
  const showGroups = (addresses: StatsAddresses): GroupStats[] => {
    const publisher = gate.publisher
    if (publisher === undefined) return []
    const { bytes: totalBytes, latencyMillis } = publisher.counters
    const id = publisher.peer instanceof SrtlaGroup ? 'srtla' : 'publish'
    const links = listLinks(gate, srtla)
    return [showGroup({ id, totalBytes, links, latencyMillis, areAddressesShown: addresses === 'full' }, now())]
  }
  const showPublisherAs = (name: string): PublishersReply => {
    const publisher = gate.publisher
    if (!publisher || !meter.isPublishing(now())) return noPublisher
    return showPublisher(name, publisher, meter.rates(now()), now())
  }
  const countActiveLinks = () =>
    listLinks(gate, srtla).filter(({ lastAt }) => now() - lastAt <= quietLinkMillisMax).length
  /** A refusal counts until a caller of the role is let in. */
  const lastRefusal = (role: Role) => {
    const last = refused.last(role)
    return last !== undefined && last.at > (gate.establishedAt(role) ?? 0) ? { [role]: last } : {}
  }
  const sweep = setInterval(() => {
    srtla.sweep(now())
    gate.sweep(now())
    meter.sample(gate.publisher, countActiveLinks(), now())
    isolateAdmitted()
  }, sweepMillis)

  const judging = setInterval(() => {
    streamEvents.sample(meter.totals, now())
    const links = meter.isPublishing(now()) ? countActiveLinks() : 0
    pathEvents.sample({ links, players: gate.players }, now())
  }, judgeMillis)

  return {
    streamEvents,
    pathEvents,
    ports: () => portsOf(opened),
    async takePorts(wanted) {
      const taken = await openPorts(hosts, log, wanted, opened)
      const left = openPortNames.map((name) => opened[name]).filter((port) => !Object.values(taken).includes(port))
      opened = taken
      receiveFrom(opened)
      await Promise.all(left.map((port) => port.close()))
    },
    admit(admission) {
      gate.admit(admission)
      engine?.showOnLoss?.(admission.lossPicture)
    },
    admissionRevision: () => gate.admission?.revision ?? null,
    takeUsedPlayKeys: () => gate.takeUsedPlayKeys(),
    streamFormat: () => engine?.streamFormat?.(),
    summarize: () =>
      summarizeIngest({
        meter,
        connection: gate.publisher,
        links: countActiveLinks(),
        players: gate.players.length,
        stalledPlayers: gate.players.filter((player) => player.isStalled(now())).length,
        engine: engine?.name ?? 'none',
        refused: refused.list(),
        lastRefused: { ...lastRefusal('publish'), ...lastRefusal('play') },
        lastCallAt: gate.lastCallAt,
        now: now(),
      }),
    showStats(): StatsReply {
      const bonding = gate.publisher?.bonding
      return {
        ts: Math.round(now()),
        engine: engine?.name ?? 'none',
        groups: showGroups(options.statsAddresses),
        timeline: engine?.timeline?.() ?? noTimeline,
        ...(bonding ? { bonding: showBonding(bonding) } : {}),
      }
    },
    showLinks: () => showGroups('full').flatMap(({ connections }) => connections),
    showPublisher(streamId): PublishersReply {
      const isKnown = judgeAccess('publish', streamId, gate.admission).objection === undefined
      return isKnown ? showPublisherAs(streamId) : noPublisher
    },
    showPublisherTo: (playKey) =>
      gate.admission && findPlayKey(playKey, gate.admission) !== undefined ? showPublisherAs(playKey) : undefined,
    async close(reason) {
      clearInterval(sweep)
      clearInterval(judging)
      streamEvents.end(now())
      pathEvents.end(now())
      gate.close(reason)
      await Promise.all([...openPortNames.map((name) => opened[name].close()), engine?.close()])
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
