/**
 * The places for connections of a port without authentication. A new connection is always accepted: when its address or
 * the port has no place left, the connection that has been silent longest is closed for it, so that silent connections
 * do not block requests.
 */
import { subscriberOf } from './addresses.ts'

interface Connection {
  readonly remoteAddress?: string | undefined
  destroy(): unknown
}

export class ConnectionPlaces<C extends Connection> {
  /** The addresses of the connections; the one that has been silent longest comes first. */
  readonly #addresses = new Map<C, string>()
  readonly #max: number
  readonly #perAddressMax: number

  constructor({ max, perAddressMax }: { readonly max: number; readonly perAddressMax: number }) {
    this.#max = max
    this.#perAddressMax = perAddressMax
  }

  take(connection: C): void {
    const address = subscriberOf(connection.remoteAddress ?? '')
    const ofAddress = [...this.#addresses].filter(([, other]) => other === address)
    if (ofAddress.length >= this.#perAddressMax) this.#close(ofAddress[0]?.[0])
    else if (this.#addresses.size >= this.#max) this.#close(this.#addresses.keys().next().value)
    this.#addresses.set(connection, address)
  }

  /** The connection sent a whole request. */
  touch(connection: C): void {
    const address = this.#addresses.get(connection)
    if (address === undefined) return
    this.#addresses.delete(connection)
    this.#addresses.set(connection, address)
  }

  leave(connection: C): void {
    this.#addresses.delete(connection)
  }

  #close(connection: C | undefined): void {
    if (connection === undefined) return
    this.#addresses.delete(connection)
    connection.destroy()
  }
}
