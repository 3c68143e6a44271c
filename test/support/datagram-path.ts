/** An emulated network between callers and a UDP port of this machine, the same for all callers, in both directions. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { atEnd } from './at-end.ts'
import { EmulatedPath, type PathConditions } from './emulated-path.ts'

export interface DatagramPath {
  /** Where callers reach the target, at 127.0.0.1. */
  readonly port: number
  /** Changes the network, from now on. @param isDead: everything is lost. */
  change(conditions: PathConditions, isDead?: boolean): void
}

/** Passes datagrams on to the end of the tests of the file. @param random as `Math.random`. */
export async function openDatagramPath(targetPort: number, random: () => number): Promise<DatagramPath> {
  const [toTarget, toCaller] = [new EmulatedPath({}, random), new EmulatedPath({}, random)]
  const server = createSocket('udp4')
  const forwarders = new Map<string, Socket>()
  const forwarderOf = (caller: RemoteInfo): Socket => {
    const key = `${caller.address}:${caller.port}`
    const known = forwarders.get(key)
    if (known) return known
    const socket = createSocket('udp4')
    socket.on('message', (bytes) => {
      toCaller.pass(bytes.length, () => server.send(bytes, caller.port, caller.address, () => {}))
    })
    socket.on('error', () => {})
    forwarders.set(key, socket)
    return socket
  }
  server.on('message', (bytes, caller) => {
    const forwarder = forwarderOf(caller)
    toTarget.pass(bytes.length, () => forwarder.send(bytes, targetPort, '127.0.0.1', () => {}))
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(async () => {
    for (const path of [toTarget, toCaller]) path.close()
    for (const socket of [server, ...forwarders.values()]) socket.close()
  })
  return {
    port: (server.address() as AddressInfo).port,
    change(conditions, isDead = false) {
      for (const path of [toTarget, toCaller]) Object.assign(path, { conditions, isDead })
    },
  }
}
