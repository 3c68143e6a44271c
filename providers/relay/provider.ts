/**
 * What the control plane needs of a place that runs relays: four calls, the same for a child process on this machine and
 * for a machine in a cloud. Every call may be repeated; none remembers anything that the place itself can't be asked again.
 */

/** What one relay needs to know. Made by an activity at the moment of the call, since it holds secrets. */
export interface RelaySpec {
  /** Also the tag and the client token: one session never has two instances. */
  readonly sessionId: string
  readonly region: string
  /** Eight letters and digits; the relay lets in only streams that carry it. */
  readonly streamToken: string
  /** Where the relay reports its health, without a path: `http://localhost:8080`. */
  readonly apiUrl: string
  /** Sent as `X-Relay-Auth` with each report. */
  readonly relayAuthSecret: string
  readonly healthIntervalSeconds: number
  /** The soft cap on throughput. Never shown to clients. */
  readonly capMbps: number
}

/** Where a relay listens. SRTLA, publish and play are UDP; stats is HTTP. */
export interface RelayEndpoint {
  readonly host: string
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

export interface RelayInstance {
  readonly instanceId: string
  /** The session in its tag, or null when the instance carries none. */
  readonly sessionId: string | null
  readonly region: string
  readonly endpoint: RelayEndpoint
  readonly createdAt: Date
}

export interface RelayProvider {
  /**
   * Resolves once the instance exists and its addresses are known; it need not report health yet.
   * Repeating it for the same session adopts what exists. Rejects with {@link RelayProviderError}.
   */
  create(spec: RelaySpec, signal: AbortSignal): Promise<RelayInstance>
  /** The instance, or null when the provider is sure that there is none. */
  describe(instanceId: string): Promise<RelayInstance | null>
  /** Resolves once the provider confirms it gone. An unknown instance is gone. */
  destroy(instanceId: string): Promise<void>
  /** All instances of this control plane, or only one session's. Rejects rather than answering in part. */
  list(filter?: { readonly sessionId: string }): Promise<RelayInstance[]>
}

/** A call that failed. `permanent`: trying again can't help (no such image, refused credentials, quota of zero). */
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
