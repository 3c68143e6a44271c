/** Reads and deletes the servers of one region of one fleet. */
import type { HetznerClient } from './hetzner-client.ts'
import { configurationError, hasCode } from './hetzner-errors.ts'
import {
  fleetNameOf,
  instanceIdOf,
  type LabelScope,
  selectorOf,
  selectorOfAllFleets,
  withFleetName,
} from './hetzner-labels.ts'
import { readAllPages } from './hetzner-pages.ts'
import { pollUntil } from './hetzner-polling.ts'
import { type Action, ActionsReply, DeleteReply, type Server, ServerReply, ServersReply } from './hetzner-shapes.ts'
import { RelayProviderError } from './provider.ts'

const deleteMillisMax = 60_000

export interface HetznerServers {
  /** The server with a name, if the API shows it. May belong to others. */
  findByName(name: string, signal?: AbortSignal): Promise<Server | undefined>
  findById(id: number | string, signal?: AbortSignal): Promise<Server | undefined>
  /** The actions of a server, oldest first; none when the server is gone. */
  listActions(id: number, signal: AbortSignal): Promise<Action[]>
  readActions(ids: readonly number[], signal: AbortSignal): Promise<Action[]>
  /** All servers of the region, or those of one session. Rejects when a page cannot be read. */
  list(sessionId?: string): Promise<Server[]>
  /** All servers of the region, whatever fleet they belong to. Rejects when a page cannot be read. */
  listAll(): Promise<Server[]>
  /** Gives a server without a name the name of the fleet. Rejects when it has got another one meanwhile. */
  adopt(id: string): Promise<void>
  /** Resolves once the API shows no such server. */
  delete(server: Pick<Server, 'id' | 'status'>): Promise<void>
  /** The instance id of a server; undefined for servers of others. */
  instanceIdOf(server: Server): string | undefined
}

export function createHetznerServers(client: HetznerClient, scope: LabelScope, pollMillis: number): HetznerServers {
  const findById = async (id: number | string, signal?: AbortSignal): Promise<Server | undefined> => {
    try {
      return (await client.request({ method: 'GET', path: `/servers/${id}`, signal }, ServerReply)).server
    } catch (error) {
      if (hasCode(error, 'not_found')) return undefined
      throw error
    }
  }

  const readAll = (selector: string): Promise<Server[]> =>
    readAllPages(client, '/servers', { selector, shape: ServersReply, itemsOf: (reply) => reply.servers })

  return {
    findById,

    async findByName(name, signal) {
      const reply = await client.request(
        { method: 'GET', path: '/servers', query: [['name', name]], signal },
        ServersReply,
      )
      return reply.servers.find((server) => server.name === name)
    },

    async listActions(id, signal) {
      const query = [
        ['sort', 'id:asc'],
        ['per_page', '50'],
      ] as const
      try {
        return (await client.request({ method: 'GET', path: `/servers/${id}/actions`, query, signal }, ActionsReply))
          .actions
      } catch (error) {
        if (hasCode(error, 'not_found')) return []
        throw error
      }
    },

    async readActions(ids, signal) {
      const query = ids.map((id) => ['id', String(id)] as const)
      return (await client.request({ method: 'GET', path: '/actions', query, signal }, ActionsReply)).actions
    },

    async list(sessionId) {
      const servers = await readAll(selectorOf(scope, sessionId))
      return servers.filter((server) => instanceIdOf(scope, server.labels) !== undefined)
    },

    async listAll() {
      const servers = await readAll(selectorOfAllFleets(scope))
      return servers.filter(({ labels }) => labels['svc-region'] === scope.region && labels['svc-instance'])
    },

    async adopt(id) {
      const { fleetName } = scope
      if (fleetName === undefined) throw new Error('a fleet without a name adopts nothing')
      // The request replaces all labels, so they are read right before it.
      const server = await findById(id)
      const found = server && fleetNameOf(server.labels)
      if (!server || found === fleetName) return
      if (found !== null) throw configurationError(`server ${id} belongs to the fleet ${found} meanwhile`)
      const body = { labels: withFleetName(server.labels, fleetName) }
      await client.request({ method: 'PUT', path: `/servers/${id}`, body }, ServerReply)
    },

    async delete({ id, status }) {
      if (status !== 'deleting' && !(await requestDeletion(id))) return
      const isGone = await pollUntil(async () => (await findById(id)) === undefined || undefined, {
        millisMax: deleteMillisMax,
        pauseMillis: pollMillis,
      })
      if (!isGone)
        throw new RelayProviderError(`server ${id} still exists ${deleteMillisMax / 1000} s after its deletion`)
    },

    instanceIdOf: (server) => instanceIdOf(scope, server.labels),
  }

  /** @returns false when the server is gone already. */
  async function requestDeletion(id: number): Promise<boolean> {
    try {
      await client.request({ method: 'DELETE', path: `/servers/${id}` }, DeleteReply)
      return true
    } catch (error) {
      if (hasCode(error, 'not_found')) return false
      throw error
    }
  }
}
