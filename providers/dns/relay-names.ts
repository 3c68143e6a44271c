/** The names of relays, as the configuration has them. */
import type { Config } from '../../platform/config/config.ts'
import { createDynamicUpdates, type RelayNames } from './dynamic-updates.ts'

/** @returns undefined without a domain for names. */
export function createRelayNames({ relayNames, fleet }: Pick<Config, 'relayNames' | 'fleet'>): RelayNames | undefined {
  if (relayNames === null || fleet.name === undefined) return undefined
  const { domain, server, key } = relayNames
  const secret = Buffer.from(key.secret, 'base64')
  return createDynamicUpdates({ domain, server, key: { name: key.name, secret }, fleetName: fleet.name })
}
