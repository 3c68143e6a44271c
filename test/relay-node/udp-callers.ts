/** UDP sockets of callers at addresses of this machine. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { onTestFinished } from 'vitest'

/** @param address Linux has all that begin with 127. */
export async function givenSocket(address = '127.0.0.1'): Promise<Socket> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4').bind(0, address)
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket
}

/** Resolves with the next datagram that the socket receives. */
export async function ask(caller: Socket, question: Buffer, port: number, host: string): Promise<Buffer> {
  const answer = once(caller, 'message')
  caller.send(question, port, host)
  return (await answer)[0]
}
