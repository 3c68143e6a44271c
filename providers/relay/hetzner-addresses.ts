/**
 * Primary IPs: addresses of Hetzner Cloud that outlive their server. One is assigned to a server that is off, or when a
 * server is created, so it cannot move to one that runs.
 */
import type { HetznerClient } from './hetzner-client.ts'
import { hasCode } from './hetzner-errors.ts'
import { fleetNameOf, instanceIdOf, type LabelScope, type Labels, selectorOf, withFleetName } from './hetzner-labels.ts'
import { readAllPages } from './hetzner-pages.ts'
import { NoReply, type PrimaryIp, PrimaryIpReply, PrimaryIpsReply } from './hetzner-shapes.ts'
import { type ListedAddress, RelayProviderError, type StableAddresses } from './provider.ts'

export interface HetznerAddresses extends StableAddresses {
  /** Keeps the address of a new server beyond its end. Safe to repeat. */
  reserve(id: number, labels: Labels, signal: AbortSignal): Promise<void>
  /** Gives the address of a server that was created without a name of a fleet that name. */
  adopt(id: number, fleetName: string): Promise<void>
}

export function createHetznerAddresses(
  client: HetznerClient,
  scope: LabelScope,
  areReserved: boolean,
): HetznerAddresses {
  const find = async (id: number | string): Promise<PrimaryIp | undefined> => {
    try {
      return (await client.request({ method: 'GET', path: `/primary_ips/${id}` }, PrimaryIpReply)).primary_ip
    } catch (error) {
      if (hasCode(error, 'not_found')) return undefined
      throw error
    }
  }
  const update = (id: number, body: object, signal?: AbortSignal) =>
    client.request({ method: 'PUT', path: `/primary_ips/${id}`, body, signal }, PrimaryIpReply)

  return {
    areReserved,
    async reserve(id, labels, signal) {
      await update(id, { auto_delete: false, labels }, signal)
    },
    async adopt(id, fleetName) {
      const { labels = {} } = (await find(id)) ?? {}
      if ('svc-instance' in labels && fleetNameOf(labels) === null)
        await update(id, { labels: withFleetName(labels, fleetName) })
    },
    async list() {
      const selector = selectorOf(scope)
      const itemsOf = (reply: { readonly primary_ips: PrimaryIp[] }) => reply.primary_ips
      const found = await readAllPages(client, '/primary_ips', { selector, shape: PrimaryIpsReply, itemsOf })
      return found.map((address) => listedAddressOf(address, scope)).filter((address) => address !== undefined)
    },
    async release(addressId) {
      const address = await find(addressId)
      // The id may come from a database that is a copy of another control plane's.
      if (!address || instanceIdOf(scope, address.labels) === undefined) return
      if (address.assignee_id)
        throw new RelayProviderError(`server ${address.assignee_id} still has the address ${address.ip}`)
      await client.request({ method: 'DELETE', path: `/primary_ips/${addressId}` }, NoReply).catch((error: unknown) => {
        if (!hasCode(error, 'not_found')) throw error
      })
    },
  }
}

function listedAddressOf({ id, ip, assignee_id, labels }: PrimaryIp, scope: LabelScope): ListedAddress | undefined {
  const instanceId = instanceIdOf(scope, labels)
  if (instanceId === undefined) return undefined
  const providerId = assignee_id ? String(assignee_id) : null
  return { addressId: String(id), host: ip, instanceId, providerId, isAttached: providerId !== null }
}
