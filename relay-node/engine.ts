/**
 * An SRT engine terminates the SRT connections that the gate admits: it receives from a publisher and sends to players.
 */
import type { RelayEngine } from '../domain/relay/engines.ts'
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

export interface Engine {
  readonly name: RelayEngine
  /** Rejects when the engine cannot serve another connection. */
  open(role: Role, protocol: Peer['protocol']): Promise<EngineEnd>
  close(): Promise<void>
}
