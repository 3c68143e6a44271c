/** What the OBS source shows and plays: the connections of an account, and the address of each for players. */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { z } from 'zod'
import type { IngestConnectionRow } from '../../db/relay/ingests.ts'
import { shownIngest } from '../../domain/relay/ingest.ts'
import { cloudRelayPorts } from '../../domain/relay/ports.ts'
import type { Config } from '../../platform/config/config.ts'

export const IngestView = z.object({
  id: z.string().describe('Without a secret. It stays the same as long as the address does, and changes with it.'),
  name: z.string(),
  detail: z.string().describe('The region and the state, for people.'),
  online: z.boolean().describe('Whether a stream comes in.'),
  bitrate_kbps: z.int(),
})

export interface PlayAddress {
  /** An IPv6 address is in brackets. */
  readonly host: string
  readonly port: number
}

type AddressConfig = Pick<Config, 'regions' | 'relayDomain'> & { readonly relay: Pick<Config['relay'], 'sls'> }

/**
 * Where players reach the relay of a connection, also before it runs where that is known: the name of the connection,
 * or the ports that it keeps on this machine. Undefined otherwise.
 */
export function findPlayAddress(
  { label, region: regionName, state, relayHost, playPort, keptPlayPort }: IngestConnectionRow,
  { regions, relayDomain, relay }: AddressConfig,
): PlayAddress | undefined {
  const region = regions.find((it) => it.region === regionName)
  const isLive = state !== null && state !== 'stopped' && relayHost !== null
  const isLocal = region?.provider === 'local'
  const ownHost = isLocal ? (region.public_host ?? region.host ?? '127.0.0.1') : undefined
  const shownHost = isLive ? relayHost : ownHost
  // Relays at an address get a name, relays at a name keep it.
  const hasName = relayDomain !== undefined && (shownHost === undefined || isIP(shownHost) !== 0)
  const host = hasName ? `${label}.${relayDomain}` : shownHost
  const expectedPort = isLocal ? keptPlayPort : (relay.sls?.playPort ?? cloudRelayPorts.playPort)
  const port = (isLive ? playPort : null) ?? expectedPort
  if (host === undefined || port === null) return undefined
  return { host: host.includes(':') ? `[${host}]` : host, port }
}

/**
 * The id of an ingest: OBS stores the address with its scene and never asks again, so a new address needs a new id.
 * @param keyId of the play key in the address.
 */
export function ingestIdOf(label: string, address: PlayAddress | undefined, keyId: string): string {
  if (!address) return label
  const hash = createHash('sha256').update(`${address.host}:${address.port} ${keyId}`).digest('hex')
  return `${label}.${hash.slice(0, 8)}`
}

export const playUrlOf = ({ host, port }: PlayAddress, key: string, srtPassphrase: string | undefined): string =>
  `srt://${host}:${port}?streamid=play/live/${key}${srtPassphrase === undefined ? '' : `&passphrase=${encodeURIComponent(srtPassphrase)}`}`

export function presentIngestConnection(
  row: IngestConnectionRow,
  id: string,
  { regions, relay }: Pick<Config, 'regions' | 'relay'>,
): z.infer<typeof IngestView> {
  const { isPublishing, bitrateKbps } = ingestOf(row, relay.healthIntervalSeconds)
  const region = regions.find((it) => it.region === row.region)?.display_name ?? row.region
  const texts = [region, stateText(row, isPublishing)].filter((text) => text !== null)
  return { id, name: row.name, detail: texts.join(', '), online: isPublishing, bitrate_kbps: bitrateKbps }
}

function ingestOf(row: IngestConnectionRow, healthIntervalSeconds: number) {
  const { state, isPublishing, publishingSince, ingestAt } = row
  const isLive = state === 'active' || state === 'grace'
  if (!isLive || isPublishing === null || publishingSince === null || ingestAt === null)
    return { isPublishing: false, bitrateKbps: 0 }
  const { bitrateKbps, links, ingestAgeSeconds } = row
  const last = { isPublishing, bitrateKbps: bitrateKbps ?? 0, links: links ?? 0, since: publishingSince }
  return shownIngest({ ...last, at: ingestAt, ageSeconds: ingestAgeSeconds ?? 0 }, healthIntervalSeconds)
}

function stateText({ state }: IngestConnectionRow, isPublishing: boolean): string {
  if (state === null || state === 'stopped') return 'relay off'
  if (state === 'provisioning') return 'relay is starting'
  if (isPublishing) return 'live'
  return state === 'grace' ? 'relay is ending or being replaced' : 'relay waits for the stream'
}
