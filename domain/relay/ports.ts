/** The ports of relays. */
export interface RelayPorts {
  /** UDP, as publish and play. */
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
  /** HTTP. */
  readonly statsPort: number
}

/** In the order of texts that list the ports. */
export const portNames = ['srtlaPort', 'publishPort', 'playPort', 'statsPort'] as const satisfies (keyof RelayPorts)[]

/**
 * The ports of each relay in a cloud, where it has a machine of its own. Relays that share a machine bind free ports
 * instead.
 */
export const cloudRelayPorts: RelayPorts = { srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }
