/**
 * The simulated provider of relays: a server in the driver, which outlives the workers, and the client that the workers
 * use. Creating is idempotent by the instance id, and destroying an unknown instance succeeds.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type RelayInstance,
  type RelayProvider,
  RelayProviderError,
  type RelaySpec,
} from '../../providers/relay/provider.ts'

/** What an instance gets at its creation. */
export type CloudSpec = Pick<RelaySpec, 'instanceId' | 'sessionId' | 'region' | 'apiUrl' | 'relayAuthSecret'>

export interface CloudInstance extends CloudSpec {
  /** Milliseconds since 1970. */
  readonly createdAt: number
  endedAt: number | null
}

export interface Cloud {
  readonly url: string
  /** All instances ever created. */
  readonly instances: ReadonlyMap<string, CloudInstance>
  /** Ends an instance, as when its machine fails. */
  lose(instanceId: string): void
  close(): void
}

interface CloudOptions {
  readonly onCreated: (instance: CloudInstance) => void
  readonly onEnded: (instance: CloudInstance) => void
}

export async function startCloud({ onCreated, onEnded }: CloudOptions): Promise<Cloud> {
  const instances = new Map<string, CloudInstance>()
  const existing = () => [...instances.values()].filter(({ endedAt }) => endedAt === null)
  const end = (instanceId: string) => {
    const instance = instances.get(instanceId)
    if (!instance || instance.endedAt !== null) return
    instance.endedAt = Date.now()
    onEnded(instance)
  }
  const create = (spec: CloudSpec): CloudInstance | undefined => {
    const known = instances.get(spec.instanceId)
    if (known) return known.endedAt === null ? known : undefined
    const instance = { ...spec, createdAt: Date.now(), endedAt: null }
    instances.set(spec.instanceId, instance)
    onCreated(instance)
    return instance
  }
  const answer = async (request: IncomingMessage): Promise<object | undefined> => {
    if (request.method === 'GET') return existing()
    if (request.method === 'POST') return create(JSON.parse(await readText(request)) as CloudSpec)
    end(decodeURIComponent(request.url?.split('/')[2] ?? ''))
    return {}
  }
  const server = createServer(async (request, response) => {
    const body = await answer(request)
    response.writeHead(body === undefined ? 409 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(body ?? {}))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, instances, lose: end, close }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

const requestMillisMax = 5_000

/** @param url of the cloud. */
export function createCloudClient(url: string): RelayProvider {
  const send = async (method: string, id: string, body?: object): Promise<unknown> => {
    const signal = AbortSignal.timeout(requestMillisMax)
    const reply = await fetch(`${url}/instances/${id}`, {
      method,
      signal,
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!reply.ok) throw new RelayProviderError(`the cloud answered ${reply.status}`, 'retry')
    return reply.json()
  }
  const list = async () => ((await send('GET', '')) as CloudInstance[]).map(toRelayInstance)
  return {
    zones: 1,
    listLagSeconds: 0,
    check: async () => void (await list()),
    create: async ({ instanceId, sessionId, region, apiUrl, relayAuthSecret }) => {
      const spec: CloudSpec = { instanceId, sessionId, region, apiUrl, relayAuthSecret }
      return toRelayInstance((await send('POST', '', spec)) as CloudInstance)
    },
    describe: async (instanceId) => (await list()).find((instance) => instance.instanceId === instanceId) ?? null,
    hasEnded: async (instanceId) => !(await list()).some((instance) => instance.instanceId === instanceId),
    destroy: async (instanceId) => void (await send('DELETE', encodeURIComponent(instanceId))),
    list: async (filter) => (await list()).filter((instance) => !filter || instance.sessionId === filter.sessionId),
  }
}

const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }

const toRelayInstance = ({ instanceId, sessionId, region, createdAt }: CloudInstance): RelayInstance => ({
  instanceId,
  providerId: null,
  sessionId,
  region,
  endpoint,
  createdAt: new Date(createdAt),
})
