/**
 * Runs relays as servers of Hetzner Cloud, one provider for each region of SVC_REGIONS. Names of servers are unique
 * within a project, so the instance id as the name keeps a repeated create from creating a second server.
 */

import { isInstanceId } from '../../domain/fleet/instance-id.ts'
import { cloudRelayPorts } from '../../domain/relay/ports.ts'
import type { RegionConfig } from '../../platform/config/regions.ts'
import type { Logger } from '../../platform/log.ts'
import { createHetznerAddresses } from './hetzner-addresses.ts'
import { createHetznerClient } from './hetzner-client.ts'
import { createServerOnce } from './hetzner-creation.ts'
import { configurationError } from './hetzner-errors.ts'
import { fleetNameOf, isLabelValue, labelsOf } from './hetzner-labels.ts'
import { createHetznerServers } from './hetzner-servers.ts'
import { checkSettings } from './hetzner-settings.ts'
import type { Server } from './hetzner-shapes.ts'
import { type RelayInstance, type RelayProvider, RelayProviderError, type RelaySpec, withAddress } from './provider.ts'

export interface HetznerRelayOptions {
  /** A region with `hetzner` settings. */
  readonly region: RegionConfig
  readonly fleetName: string | undefined
  readonly token: string
  readonly apiUrl: string
  readonly log: Logger
  /** Creates the cloud-init user data, which contains the secret of the instance. */
  readonly userData: (spec: RelaySpec) => string
  readonly requestMillisMax?: number
  /** The first pause between look-ups of something that is in progress. */
  readonly pollMillis?: number
}

const listLagSeconds = 60
const defaultRequestMillisMax = 15_000
const defaultPollMillis = 1000

/** The images of Hetzner configure the first address of the server's network. */
const ipv6AddressOf = ({ public_net: { ipv6 } }: Server): string | undefined => {
  const [, prefix] = /^([0-9a-f:]+::)\/64$/i.exec(ipv6?.ip ?? '') ?? []
  return prefix && `${prefix}1`
}

export function createHetznerRelayProvider(options: HetznerRelayOptions): RelayProvider {
  const { region: regionConfig, fleetName, token, apiUrl, log, userData } = options
  const { requestMillisMax = defaultRequestMillisMax, pollMillis = defaultPollMillis } = options
  const { region, hetzner: settings } = regionConfig
  if (!settings) throw new Error(`region ${region} has no settings for Hetzner Cloud`)
  const scope = { region, fleetName }
  const client = createHetznerClient({ apiUrl, token, requestMillisMax })
  const servers = createHetznerServers(client, scope, pollMillis)
  const addresses = createHetznerAddresses(client, scope, regionConfig.stable_address)

  const assertLabels = (): void => {
    if (!isLabelValue(region))
      throw configurationError(`region "${region}" begins or ends with a hyphen, which no label of Hetzner may`)
  }

  const instanceOf = (server: Server): RelayInstance | undefined => {
    const instanceId = servers.instanceIdOf(server)
    if (instanceId === undefined) return undefined
    return {
      instanceId,
      providerId: String(server.id),
      sessionId: server.labels['svc-session'] || null,
      region,
      // Empty until the server has an address. It exists, so it must be possible to list and destroy it.
      endpoint: { host: server.public_net.ipv4?.ip ?? '', hostV6: ipv6AddressOf(server), ...cloudRelayPorts },
      createdAt: new Date(server.created),
    }
  }

  /** The server of an instance, by its own id where that is known, since the list of servers may lag behind. */
  const findServer = async (instanceId: string, providerId?: string | null): Promise<Server | undefined> => {
    if (!isInstanceId(instanceId)) return undefined
    const isKnown = typeof providerId === 'string' && /^\d+$/.test(providerId)
    const server = isKnown ? await servers.findById(providerId) : await servers.findByName(instanceId)
    return server && servers.instanceIdOf(server) === instanceId ? server : undefined
  }

  const isFinal = (error: unknown) => error instanceof RelayProviderError && error.failure === 'give_up'

  /** Creates a server with another address where Hetzner refuses the stable one, which an operator may have deleted. */
  const withoutAddress =
    <Value>(create: () => Promise<Value>) =>
    (error: unknown): Promise<Value> => {
      if (!isFinal(error)) throw error
      log.warn({ err: error, region }, 'a relay does not get the stable address of its session')
      return create()
    }

  const reserveAddress = async (instance: RelayInstance, server: Server, spec: RelaySpec, signal: AbortSignal) => {
    const { ipv4 } = server.public_net
    if (!ipv4) return instance
    try {
      await addresses.reserve(ipv4.id, labelsOf(scope, spec), signal)
      return withAddress(instance, { addressId: String(ipv4.id), host: ipv4.ip })
    } catch (error) {
      if (!isFinal(error)) throw error
      const { instanceId } = spec
      log.warn(
        { err: error, instanceId },
        'a relay has an ordinary address, since Hetzner reserved no stable one for it',
      )
      return instance
    }
  }

  return {
    zones: 1,
    listLagSeconds,

    async create(spec, signal) {
      const { instanceId, sessionId, addressId = null } = spec
      if (!isInstanceId(instanceId)) throw configurationError('this is not an instance id')
      assertLabels()
      const startedAt = performance.now()
      const body = {
        name: instanceId,
        server_type: settings.server_type,
        image: settings.image,
        location: settings.location,
        ...(settings.ssh_keys ? { ssh_keys: settings.ssh_keys } : {}),
        labels: labelsOf(scope, spec),
        user_data: userData(spec),
        start_after_create: true,
        public_net: { enable_ipv4: true, enable_ipv6: true },
      }
      const atAddress = { ...body, public_net: { ...body.public_net, ipv4: Number(addressId) } }
      const secrets = [spec.relayAuthSecret, spec.srtPassphrase, spec.sls?.apiKey].filter(
        (secret) => typeof secret === 'string',
      )
      const create = (request: typeof body) =>
        createServerOnce({ client, servers, pollMillis, signal }, request, secrets)
      // An earlier call may have created the server, which has the address then.
      const isPlain = addressId === null || (await servers.findByName(instanceId, signal)) !== undefined
      const { server, isAdopted } = isPlain
        ? await create(body)
        : await create(atAddress).catch(withoutAddress(() => create(body)))
      const created = instanceOf(server)
      const isStable = regionConfig.stable_address || addressId !== null
      const instance = created && isStable ? await reserveAddress(created, server, spec, signal) : created
      if (!instance) throw configurationError(`server ${server.id} has lost its labels`)
      log.info(
        {
          instanceId,
          sessionId,
          region,
          providerId: instance.providerId,
          isAdopted,
          millis: Math.round(performance.now() - startedAt),
        },
        'relay created',
      )
      return instance
    },

    async describe(instanceId) {
      const server = await findServer(instanceId)
      return (server && instanceOf(server)) ?? null
    },

    async destroy(instanceId, providerId) {
      const server = await findServer(instanceId, providerId)
      if (!server) return
      await servers.delete(server)
      log.info({ instanceId, region, providerId: String(server.id) }, 'relay destroyed')
    },

    async hasEnded(instanceId, providerId) {
      const server = providerId === null ? undefined : await findServer(instanceId, providerId)
      return server?.status === 'off'
    },

    async list(filter) {
      assertLabels()
      const found = await servers.list(filter?.sessionId)
      return found.map(instanceOf).filter((instance) => instance !== undefined)
    },

    addresses,

    async check() {
      assertLabels()
      await checkSettings(client, region, settings)
    },

    account: {
      async listAll() {
        assertLabels()
        return (await servers.listAll()).map(({ id, labels }) => ({
          instanceId: labels['svc-instance'] ?? '',
          providerId: String(id),
          sessionId: labels['svc-session'] || null,
          fleetName: fleetNameOf(labels),
        }))
      },

      async adopt({ instanceId, providerId }) {
        await servers.adopt(providerId)
        const ipv4 = (await servers.findById(providerId))?.public_net.ipv4
        if (ipv4 && fleetName !== undefined) await addresses.adopt(ipv4.id, fleetName)
        log.info({ instanceId, region, providerId }, 'relay adopted')
      },
    },
  }
}
