/** Passes the datagrams of one caller at a time on from one port, as a router does, and can repeat them. */
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

export async function startRouter(host: string, port: number) {
  const [inner, outer] = [createSocket('udp4').bind(0, '127.0.0.1'), createSocket('udp4').bind(0, '127.0.0.1')]
  await Promise.all([once(inner, 'listening'), once(outer, 'listening')])
  onTestFinished(() => void [inner, outer].map((socket) => socket.close()))
  const handshakes: Buffer[] = []
  let caller: RemoteInfo | undefined
  inner.on('message', (datagram, from) => {
    caller = from
    if (datagram.readUInt16BE(0) === 0x8000) handshakes.push(datagram)
    outer.send(datagram, port, host)
  })
  outer.on('message', (datagram) => {
    if (caller) inner.send(datagram, caller.port, caller.address)
  })
  return {
    port: inner.address().port,
    /** From where the datagrams of the caller arrive. */
    source: outer.address(),
    handshakes,
    repeat(datagrams: readonly Buffer[]) {
      for (const datagram of datagrams) outer.send(datagram, port, host)
    },
  }
}
