/**
 * An SRT engine terminates the SRT connections that the gate admits: it receives from a publisher and sends to players.
 */
import type { RelayEngine } from '../domain/relay/engines.ts'
import type { OnLoss } from '../domain/relay/on-loss.ts'
import type { StreamFormat } from '../domain/relay/stream-format.ts'
import type { LossPicture } from './loss-picture.ts'
import type { Peer } from './peer.ts'
import type { Role } from './stream-access.ts'

/** The engine's end of one connection: a listener on this machine. */
export interface EngineEnd {
  readonly address: string
  readonly port: number
  /** What the engine expects; undefined where it takes that of the caller. */
  readonly streamId?: string
  /** Resolves with the reason when the engine has closed its end. */
  readonly ended: Promise<string>
  /** The SRT connection is established. */
  connected(): void
  /** A data packet of the publisher is forwarded. */
  received?(): void
  close(): void
}

/** The timeline that the players see. */
export interface TimelineStats {
  /** `untouched`: the stream is not MPEG-TS. `off`: the engine does not repair timelines. */
  readonly mode: OnLoss | 'untouched' | 'off'
  /** Parts of the live stream with one constant between the publisher's and the players' timestamps. */
  readonly segments: number
  /** How long the players got something else than the live stream. */
  readonly filled_ms: number
}

export interface Engine {
  readonly name: RelayEngine
  /** Rejects when the engine cannot serve another connection. */
  open(role: Role, protocol: Peer['protocol']): Promise<EngineEnd>
  /** From now on players see this while no stream arrives. An engine without it sends nothing then. */
  showOnLoss?(picture: LossPicture): void
  /** The present format of the stream, or the last one; undefined before the first. */
  streamFormat?(): StreamFormat | undefined
  timeline?(): TimelineStats
  close(): Promise<void>
}
