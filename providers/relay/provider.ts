/**
 * The interface of relay providers, the same for child processes on this machine and for machines in a cloud. Every
 * call is idempotent, and a provider keeps no state of its own.
 */

import type { RelayEngineSetting, SlsServer } from '../../domain/relay/engines.ts'
import type { RelayPorts } from '../../domain/relay/ports.ts'
import type { ProvisioningDetail } from '../../domain/relay/session.ts'
import type { StatsAddresses } from '../../domain/relay/stats-addresses.ts'
import type { StreamTokenHash } from '../../platform/stream-token-hashes.ts'

/** The parameters of one relay. An activity creates it right before the call, since it contains secrets. */
export interface RelaySpec {
  /**
   * Chosen by the control plane before the call: the tag and the client token of the instance, so that it is created
   * once.
   */
  readonly instanceId: string
  /** The session that the instance is created for; null for a warm instance, which has none yet. */
  readonly sessionId: string | null
  readonly region: string
  /** The number of the zone to use: 0 to `zones - 1`. */
  readonly zone: number
  /**
   * By which the relay recognises the stream token. Null together with the session. A cloud provider ignores it: its
   * relays receive their session, and what they admit by, in the reply to their first report.
   */
  readonly streamTokenHash: StreamTokenHash | null
  /** The number of the instance in its session. Ignored without a session. */
  readonly binding?: number | undefined
  /** The stable address to create it with, which a provider whose addresses can move ignores. */
  readonly addressId?: string | null | undefined
  /** The ports that it takes where it can, which a provider with fixed ports ignores. */
  readonly ports?: RelayPorts | null | undefined
  /** The API that the relay reports its health to, without a path: `http://localhost:8080`. */
  readonly apiUrl: string
  /** The instance's own secret, sent as `X-Relay-Auth` with each report. */
  readonly relayAuthSecret: string
  readonly healthIntervalSeconds: number
  /** The soft cap on throughput. Never shown to clients. */
  readonly capMbps: number
  readonly engine: RelayEngineSetting
  /** Set with the engine `sls` only. */
  readonly sls?: SlsServer | undefined
  /** Publishers and players must encrypt with it. */
  readonly srtPassphrase?: string | undefined
  /** The least latency of a stream over several links. */
  readonly srtlaLatencyMillisMin?: number | undefined
  readonly statsAddresses?: StatsAddresses | undefined
  /** The bitrate below which a stream is weak. */
  readonly streamWeakKbps?: number | undefined
}

/** The address and the ports of a relay. SRTLA, publish and play are UDP; stats is HTTP. */
export interface RelayEndpoint {
  /** An IPv4 address or a name, or an IPv6 address where there is no other. */
  readonly host: string
  /** Where the instance has an IPv6 address as well. */
  readonly hostV6?: string | undefined
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  readonly statsPort: number
}

export interface RelayInstance {
  readonly instanceId: string
  /** The provider's own id, for example `i-0123456789abcdef0`; null where the provider uses `instanceId`. */
  readonly providerId: string | null
  /** The session in its tag, or null when the instance was created without one. */
  readonly sessionId: string | null
  readonly region: string
  readonly endpoint: RelayEndpoint
  /** Of a new instance whose host is a stable address, which may outlive it. */
  readonly addressId?: string | undefined
  readonly createdAt: Date
}

/** A stable address as its provider shows it: an Elastic IP of EC2, or a Primary IP of Hetzner Cloud. */
export interface ListedAddress {
  /** The provider's id. */
  readonly addressId: string
  readonly host: string
  /** The instance in its tag, which it was reserved for. */
  readonly instanceId: string
  /** The provider's id of the instance that it leads to; null for none. */
  readonly providerId: string | null
  readonly isAttached: boolean
}

/** Addresses that a session keeps when its instance is replaced. */
export interface StableAddresses {
  /** Whether each new instance gets one. Those that exist are managed in any case. */
  readonly areReserved: boolean
  /** All of the region and the fleet. Rejects when the list would be incomplete. */
  list(): Promise<ListedAddress[]>
  /**
   * Makes the address lead to another running instance. Safe to repeat. Absent where only a new instance can get it,
   * after the end of the one before. Rejects with {@link RelayProviderError}.
   */
  move?(addressId: string, providerId: string): Promise<void>
  /**
   * Resolves once the provider has no such address, or has it for another fleet. Rejects with
   * {@link RelayProviderError}, also while a machine has it that cannot lose it.
   */
  release(addressId: string): Promise<void>
}

/** An IPv6 address would not move with it, so there is none beside a stable address. */
export const withAddress = (
  { endpoint, ...instance }: RelayInstance,
  { addressId, host }: { readonly addressId: string; readonly host: string },
): RelayInstance => ({ ...instance, addressId, endpoint: { ...endpoint, host, hostV6: undefined } })

/** An instance of any fleet, as its provider shows it. */
export interface FleetMember {
  readonly instanceId: string
  readonly providerId: string
  readonly sessionId: string | null
  /** Null for an instance without a name. */
  readonly fleetName: string | null
}

/** An account at a provider, which other control planes may use as well. */
export interface SharedAccount {
  /** All instances of the region, whatever fleet they belong to. Rejects when the list would be incomplete. */
  listAll(): Promise<FleetMember[]>
  /**
   * Gives an instance without a name the name of this fleet. Safe to repeat. Rejects with {@link RelayProviderError}.
   */
  adopt(instance: FleetMember): Promise<void>
}

export interface RelayProvider {
  /** The number of zones that an instance can be created in. */
  readonly zones: number
  /** How long a list may lack an instance that was created, in seconds. */
  readonly listLagSeconds: number
  /**
   * Resolves once the instance exists and its addresses are known, possibly before its first health report. A repeated
   * call with the same instance id and zone adopts the existing instance. Rejects with {@link RelayProviderError}.
   */
  create(spec: RelaySpec, signal: AbortSignal): Promise<RelayInstance>
  /** The instance, or null when the provider does not show it. */
  describe(instanceId: string): Promise<RelayInstance | null>
  /**
   * Resolves once the provider shows no such instance, which includes unknown instances. Proves nothing about an
   * instance that was created less than `listLagSeconds` ago, unless its provider id is given.
   */
  destroy(instanceId: string, providerId?: string | null): Promise<void>
  /**
   * Whether it is certain that the instance has ended, by its provider's own word. An instance that is only not shown
   * is not. Rejects with {@link RelayProviderError}.
   */
  hasEnded(instanceId: string, providerId: string | null): Promise<boolean>
  /**
   * Its instances share one host, so that one can take the ports of another only after that has ended. Absent where
   * each has an address of its own.
   */
  readonly hasSharedHost?: true
  /** Only in a cloud. */
  readonly addresses?: StableAddresses
  /** All instances of the region, or only those of one session. Rejects when the list would be incomplete. */
  list(filter?: { readonly sessionId: string }): Promise<RelayInstance[]>
  /** Makes one harmless call. Rejects with {@link RelayProviderError} when credentials or settings are wrong. */
  check(): Promise<void>
  /** Only where other control planes may use the same account. */
  readonly account?: SharedAccount
}

/**
 * What to do after a failed call. `retry`: the same call may succeed later. `throttled`: the provider limits calls, so
 * it is repeated after a pause and does not count as a failure. `try_other_zone`: nothing was created, and this zone
 * has no room. `give_up`: another attempt would fail too.
 */
export const providerFailures = ['retry', 'throttled', 'try_other_zone', 'give_up'] as const
export type ProviderFailure = (typeof providerFailures)[number]

export interface ProviderErrorOptions extends ErrorOptions {
  /** Shown to the user when the call is given up. */
  readonly detail?: ProvisioningDetail
  /** The pause that the provider requested. */
  readonly retryAfterSeconds?: number
}

/** A failed call. The message contains no secret. */
export class RelayProviderError extends Error {
  override name = 'RelayProviderError'
  readonly detail: ProvisioningDetail | undefined
  readonly retryAfterSeconds: number | undefined
  constructor(
    message: string,
    readonly failure: ProviderFailure = 'retry',
    { detail, retryAfterSeconds, ...options }: ProviderErrorOptions = {},
  ) {
    super(message, options)
    this.detail = detail
    this.retryAfterSeconds = retryAfterSeconds
  }
}
