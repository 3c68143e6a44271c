/** Creates a server at most once per name, and waits until its actions have ended and it has an address. */
import type { HetznerClient } from './hetzner-client.ts'
import { configurationError, hasCode, meaningOf } from './hetzner-errors.ts'
import { pollUntil } from './hetzner-polling.ts'
import type { HetznerServers } from './hetzner-servers.ts'
import { type Action, CreateReply, type Server } from './hetzner-shapes.ts'
import { RelayProviderError } from './provider.ts'

interface Deps {
  readonly client: HetznerClient
  readonly servers: HetznerServers
  readonly pollMillis: number
  readonly signal: AbortSignal
}

interface CreatedServer {
  readonly server: Server
  /** Whether an earlier or a concurrent call created it. */
  readonly isAdopted: boolean
}

/** How long a server that exists may be missing in the list of servers. */
const adoptMillisMax = 60_000
/** Hetzner needs 10 to 30 seconds. */
const createMillisMax = 120_000

/**
 * When aborted, it rejects with the reason of the signal and leaves the server to the caller: another call, which
 * adopts it, may be under way. A request that was aborted or timed out may still be performed later, even after the
 * instance was destroyed: such a server has the labels of the instance, so the sweep finds and destroys it.
 */
export async function createServerOnce(
  deps: Deps,
  body: { readonly name: string },
  secrets: readonly string[],
): Promise<CreatedServer> {
  const { client, servers, signal } = deps
  try {
    const { server, actions, isAdopted } = await requestServer(deps, body, secrets)
    const ended = await awaitActions(deps, body.name, actions.filter(isPartOfCreation))
    const failed = ended.find(({ status }) => status === 'error')
    if (failed) {
      // A failed deletion is the error then: the next attempt adopts the server and comes here again.
      await servers.delete(server)
      throw failureOf(body.name, failed, (text) => client.quote(text, secrets))
    }
    return { server: await awaitAddress(deps, server), isAdopted }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  }
}

/** Requests the server, or finds the one that has the name already. */
async function requestServer(deps: Deps, body: { readonly name: string }, secrets: readonly string[]) {
  const { client, servers, signal } = deps
  try {
    const reply = await client.request({ method: 'POST', path: '/servers', body, signal, secrets }, CreateReply)
    return { server: reply.server, actions: [reply.action, ...reply.next_actions], isAdopted: false }
  } catch (error) {
    if (!hasCode(error, 'uniqueness_error')) throw error
    const server = await findExisting(deps, body.name)
    return { server, actions: await servers.listActions(server.id, signal), isAdopted: true }
  }
}

async function findExisting({ servers, pollMillis, signal }: Deps, name: string): Promise<Server> {
  const server = await pollUntil(() => servers.findByName(name, signal), {
    millisMax: adoptMillisMax,
    pauseMillis: pollMillis,
    signal,
  })
  if (!server) throw new RelayProviderError(`server ${name} exists, but Hetzner does not list it yet`)
  if (servers.instanceIdOf(server) !== name)
    throw configurationError(`server ${name} exists and has the labels of another fleet, region or user`)
  if (server.status === 'deleting') throw new RelayProviderError(`server ${name} is being deleted`)
  return server
}

/** Any other actions are an operator's. */
const isPartOfCreation = ({ command }: Action): boolean => command === 'create_server' || command === 'start_server'

/** Resolves once all of them have succeeded or one has failed. */
async function awaitActions({ servers, pollMillis, signal }: Deps, name: string, actions: readonly Action[]) {
  const isDecided = (all: readonly Action[]) =>
    all.some(({ status }) => status === 'error') || all.every(({ status }) => status === 'success')
  if (isDecided(actions)) return actions
  const ids = actions.map(({ id }) => id)
  const decided = await pollUntil(
    async () => {
      const latest = await servers.readActions(ids, signal)
      return isDecided(latest) ? latest : undefined
    },
    { millisMax: createMillisMax, pauseMillis: pollMillis, signal },
  )
  if (!decided) throw new RelayProviderError(`server ${name} was not ready within ${createMillisMax / 1000} s`)
  return decided
}

async function awaitAddress({ servers, pollMillis, signal }: Deps, { id, name }: Server): Promise<Server> {
  const found = await pollUntil(
    async () => {
      const server = await servers.findById(id, signal)
      if (!server) throw new RelayProviderError(`server ${name} was deleted during its creation`)
      return server.public_net.ipv4 ? server : undefined
    },
    { millisMax: adoptMillisMax, pauseMillis: pollMillis, signal },
  )
  if (!found) throw new RelayProviderError(`server ${name} has no IPv4 address`)
  return found
}

function failureOf(name: string, { command, error }: Action, quote: (text: string) => string): RelayProviderError {
  const { code, message } = error ?? { code: 'action_failed', message: '' }
  const { failure, detail } = meaningOf(code, message)
  const text = `${command} of server ${name} failed, and the server was deleted: ${quote(`${code} ${message}`)}`
  return new RelayProviderError(text, failure, detail ? { detail } : {})
}
