/**
 * Which addresses users may have messages sent to. A user chooses the URL and this service's network sends the request,
 * so without these rules it would reach what only that network can: metadata of the machine, databases, other services
 * (SSRF).
 */
import ipaddr from 'ipaddr.js'
import type { EndpointType } from '../../domain/notifications/kinds.ts'
import { type LookUpHost, lookUpHost } from './host-lookup.ts'

export interface EndpointRules {
  readonly protocols: readonly string[]
  /** As in `URL.port`: empty for the default port of the protocol. */
  readonly isAllowedPort: (port: string) => boolean
  readonly isAllowedAddress: (address: string) => boolean
  readonly discordHosts: readonly string[]
  readonly resolve: LookUpHost
  /** The time for a request and the head of its reply. */
  readonly replyMillisMax: number
}

/** 168.63.129.16 is a public address by its range, and the metadata service of virtual machines in Azure. */
const metadataAddresses = new Set(['168.63.129.16'])
/** The only range that IANA assigns global addresses from. */
const globalIpv6 = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * Whether the address is a global unicast one. Addresses that contain an IPv4 address (mapped, NAT64, 6to4) are not.
 */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.range() !== 'unicast' || metadataAddresses.has(address.toString())) return false
  return address instanceof ipaddr.IPv4 || address.match(globalIpv6)
}

/** The rules in production. Tests send to local servers, with rules of their own. */
export const publicEndpointRules: EndpointRules = {
  protocols: ['https:'],
  // 8443 is the usual port of a service that may not bind 443. Others would make this service a port scanner.
  isAllowedPort: (port) => port === '' || port === '8443',
  isAllowedAddress: isPublicAddress,
  discordHosts: ['discord.com', 'discordapp.com', 'ptb.discord.com', 'canary.discord.com'],
  resolve: lookUpHost,
  replyMillisMax: 10_000,
}

const urlLengthMax = 2000

/** The URL, or the problem with it in a sentence for the user. Reads only the text: see {@link findAddressProblem}. */
export function parseEndpointUrl(
  type: EndpointType,
  text: string,
  rules: EndpointRules = publicEndpointRules,
): { readonly url: URL } | { readonly problem: string } {
  if (text.length > urlLengthMax || !URL.canParse(text)) return { problem: 'Enter a complete URL, with https://.' }
  const url = new URL(text)
  if (!rules.protocols.includes(url.protocol)) return { problem: 'The URL must begin with https://.' }
  if (url.username !== '' || url.password !== '')
    return { problem: 'The URL must not contain a user name or password.' }
  url.hash = ''
  if (type === 'discord')
    return isDiscordWebhook(url, rules)
      ? { url }
      : { problem: 'This is not the URL of a Discord webhook. Copy it from the settings of your Discord channel.' }
  if (!rules.isAllowedPort(url.port)) return { problem: 'The port must be 443 or 8443.' }
  const host = addressOf(url)
  if (host !== undefined && !rules.isAllowedAddress(host)) return { problem: refusedAddressText }
  return { url }
}

const isDiscordWebhook = ({ host, pathname, searchParams }: URL, { discordHosts }: EndpointRules): boolean =>
  discordHosts.includes(host) &&
  /^\/api(\/v\d{1,2})?\/webhooks\/\d{1,25}\/[\w-]{1,200}$/.test(pathname) &&
  [...searchParams].every(([name, value]) => name === 'thread_id' && /^\d{1,25}$/.test(value))

export const refusedAddressText = 'The host must have a public address on the internet, and no private one.'

/** The IP address that the URL has in place of a host name. `URL` has already normalised forms such as 0x7f.1. */
export function addressOf({ hostname }: URL): string | undefined {
  const text = hostname.replace(/^\[|\]$/g, '')
  return ipaddr.isValid(text) ? text : undefined
}

/**
 * Resolves the host of a URL that is about to be saved, so that its owner learns of a refused address at once. It may
 * resolve to another one later, so sending checks again. Unknown hosts get the same answer, which so reveals no
 * internal names. The hosts of Discord are known.
 * @param userId the account of the URL.
 */
export async function findAddressProblem(
  url: URL,
  userId: string,
  rules: EndpointRules = publicEndpointRules,
): Promise<string | undefined> {
  if (addressOf(url) !== undefined || rules.discordHosts.includes(url.host)) return undefined
  const addresses = await rules.resolve(url.hostname, userId).catch(() => [])
  const isAllowed = addresses.length > 0 && addresses.every(({ address }) => rules.isAllowedAddress(address))
  return isAllowed ? undefined : refusedAddressText
}
