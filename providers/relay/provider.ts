/**
 * The interface of relay providers, the same for child processes on this machine and for machines in a cloud. Every call is
 * idempotent, and a provider keeps no state of its own.
 */
import type { RelayEngineSetting, SlsServer } from '../../platform/relay-engines.ts'

/** The parameters of one relay. An activity creates it right before the call, since it contains secrets. */
export interface RelaySpec {
  /** Also the tag and the client token of the instance, so that a session never has two instances. */
  readonly sessionId: string
  readonly region: string
  /** Eight letters and digits. The relay accepts only streams with this token. */
  readonly streamToken: string
  /** The API that the relay reports its health to, without a path: `http://localhost:8080`. */
  readonly apiUrl: string
  /** Sent as `X-Relay-Auth` with each report. */
  readonly relayAuthSecret: string
  readonly healthIntervalSeconds: number
  /** The soft cap on throughput. Never shown to clients. */
  readonly capMbps: number
  readonly engine: RelayEngineSetting
  /** Set with the engine `sls` only. */
  readonly sls?: SlsServer | undefined
  /** Publishers and players must encrypt with it. */
  readonly srtPassphrase?: string | undefined
}

/** The address and the ports of a relay. SRTLA, publish and play are UDP; stats is HTTP. */
export interface RelayEndpoint {
  readonly host: string
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

export interface RelayInstance {
  readonly instanceId: string
  /** The session in its tag, or null when the instance has no tag. */
  readonly sessionId: string | null
  readonly region: string
  readonly endpoint: RelayEndpoint
  readonly createdAt: Date
}

export interface RelayProvider {
  /**
   * Resolves once the instance exists and its addresses are known, possibly before its first health report.
   * A repeated call for the same session adopts the existing instance. Rejects with {@link RelayProviderError}.
   */
  create(spec: RelaySpec, signal: AbortSignal): Promise<RelayInstance>
  /** The instance, or null when it certainly does not exist. */
  describe(instanceId: string): Promise<RelayInstance | null>
  /** Resolves once the instance certainly does not exist, which includes unknown instances. */
  destroy(instanceId: string): Promise<void>
  /** All instances of this control plane, or only those of one session. Rejects when the list would be incomplete. */
  list(filter?: { readonly sessionId: string }): Promise<RelayInstance[]>
}

/** A failed call. `permanent`: another attempt would fail too (missing image, invalid credentials, quota of zero). */
export class RelayProviderError extends Error {
  override name = 'RelayProviderError'
  constructor(
    message: string,
    readonly permanent = false,
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}
