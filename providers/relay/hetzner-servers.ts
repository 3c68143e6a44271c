/** Reads and deletes the servers of one region of one fleet. */
import type { z } from 'zod'
import type { HetznerClient } from './hetzner-client.ts'
import { hasCode } from './hetzner-errors.ts'
import { instanceIdOf, type LabelScope, selectorOf } from './hetzner-labels.ts'
import { pollUntil } from './hetzner-polling.ts'
import { type Action, ActionsReply, DeleteReply, type Server, ServerReply, ServersReply } from './hetzner-shapes.ts'
import { RelayProviderError } from './provider.ts'

const deleteMillisMax = 60_000
/** The maximum of the API. */
const serversPerPage = 50

export interface HetznerServers {
  /** The server with a name, if the API shows it. May belong to others. */
  findByName(name: string, signal?: AbortSignal): Promise<Server | undefined>
  findById(id: number | string, signal?: AbortSignal): Promise<Server | undefined>
  /** The actions of a server, oldest first; none when the server is gone. */
  listActions(id: number, signal: AbortSignal): Promise<Action[]>
  readActions(ids: readonly number[], signal: AbortSignal): Promise<Action[]>
  /** All servers of the region, or those of one session. Rejects when a page cannot be read. */
  list(sessionId?: string): Promise<Server[]>
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

  const readPage = (page: number, sessionId?: string): Promise<z.infer<typeof ServersReply>> =>
    client.request(
      {
        method: 'GET',
        path: '/servers',
        query: [
          ['label_selector', selectorOf(scope, sessionId)],
          ['sort', 'id:asc'],
          ['per_page', String(serversPerPage)],
          ['page', String(page)],
        ],
      },
      ServersReply,
    )

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
      const first = await readPage(1, sessionId)
      const servers = new Map(first.servers.map((server) => [server.id, server]))
      const lastPage = lastPageOf(first)
      // Backwards, and the first page again: when a server is deleted meanwhile, all later ones move towards the first page, so
      // they may be read twice and are never missed.
      for (let page = lastPage; page >= 1 && lastPage > 1; page--)
        for (const server of (await readPage(page, sessionId)).servers) servers.set(server.id, server)
      return [...servers.values()].filter((server) => instanceIdOf(scope, server.labels) !== undefined)
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

/** The API may leave it out on the last page. */
function lastPageOf({ meta: { pagination } }: z.infer<typeof ServersReply>): number {
  if (pagination.next_page === null) return 1
  if (pagination.last_page !== null) return pagination.last_page
  throw new RelayProviderError('Hetzner did not report the number of pages, so the list of servers would be incomplete')
}
