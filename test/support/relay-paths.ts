/**
 * A TCP proxy in user space between relays and the control plane that can cut off one relay in both directions: its
 * reports do not arrive, and neither do the answers of its statistics port. Connections stay open, and are silent.
 */
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'

/** In the reports of a relay, and in its answer to `GET /healthz`. */
const instancePattern = /"instance_id":"([^"]+)"/

interface Pair {
  /** The relay that it belongs to. Unknown until its first report or answer. */
  instanceId: string | undefined
  readonly sockets: readonly Socket[]
}

export class RelayPaths {
  readonly #servers = new Set<Server>()
  readonly #pairs = new Set<Pair>()
  readonly #cut = new Set<string>()
  #isClosed = false

  /** Passes connections on to the API. @returns the port at 127.0.0.1. */
  openApi(port: number): Promise<number> {
    return this.#listen(0, (client) => this.#connect(client, connect(port, '127.0.0.1'), client))
  }

  async #listen(port: number, onConnection: (client: Socket) => void): Promise<number> {
    const server = createServer(onConnection).listen(port, '127.0.0.1')
    await once(server, 'listening')
    this.#servers.add(server)
    return (server.address() as AddressInfo).port
  }

  /** Passes the statistics ports of all relays of a folder, which listen at another address, on from 127.0.0.1. */
  passStatistics(folder: string, host: string): void {
    const seen = new Set<number>()
    const look = async () => {
      for (const name of await readdir(folder).catch(() => [])) {
        const state = name.endsWith('.json') ? await readFile(join(folder, name), 'utf8').catch(() => '') : ''
        const port = Number(/"statsPort":\s*(\d+)/.exec(state)?.[1] ?? 0)
        if (port === 0 || seen.has(port)) continue
        seen.add(port)
        await this.#listen(port, (client) => {
          const relay = connect(port, host)
          this.#connect(client, relay, relay)
        })
      }
      if (!this.#isClosed) setTimeout(look, 100)
    }
    void look()
  }

  cut(instanceId: string): void {
    this.#cut.add(instanceId)
    for (const pair of this.#of(instanceId)) for (const socket of pair.sockets) socket.pause()
  }

  /** What was under way arrives late, as after an outage of a network. */
  restore(instanceId: string): void {
    this.#cut.delete(instanceId)
    for (const pair of this.#of(instanceId)) for (const socket of pair.sockets) socket.resume()
  }

  close(): void {
    this.#isClosed = true
    for (const server of this.#servers) server.close()
    for (const { sockets } of this.#pairs) for (const socket of sockets) socket.destroy()
  }

  #of(instanceId: string): Pair[] {
    return [...this.#pairs].filter((pair) => pair.instanceId === instanceId)
  }

  /** @param relay the end that states its instance. */
  #connect(client: Socket, server: Socket, relay: Socket): void {
    const pair: Pair = { instanceId: undefined, sockets: [client, server] }
    this.#pairs.add(pair)
    const end = () => {
      for (const socket of pair.sockets) socket.destroy()
      this.#pairs.delete(pair)
    }
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true).on('error', end).on('close', end)
      from.on('data', (bytes) => {
        if (from === relay) pair.instanceId = instancePattern.exec(bytes.toString('latin1'))?.[1] ?? pair.instanceId
        if (pair.instanceId !== undefined && this.#cut.has(pair.instanceId)) {
          for (const socket of pair.sockets) socket.pause()
          from.unshift(bytes)
        } else to.write(bytes)
      })
      from.on('end', () => to.end())
    }
  }
}
