/**
 * A sender that calls as soon as it has an address. It repeats its handshake as every sender does, only more often: one
 * that comes before the relay has its session is admitted by a repetition, and refused after a second without one.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isHandshake } from '../relay-node/srt-packets.ts'
import { handshake, handshakeTypes, libraryConclusion, read } from '../test/support/srt-packets.ts'

const repeatMillis = 1
const openMillisMax = 3_000
const socketId = 77

/** Resolves when the connection is open. @param srtUrl the address to publish to, with the stream id. */
export async function openConnection(srtUrl: string): Promise<void> {
  const { hostname, port, searchParams } = new URL(srtUrl)
  const streamId = searchParams.get('streamid') ?? ''
  const socket = createSocket('udp4')
  socket.connect(Number(port), hostname)
  await once(socket, 'connect')
  let conclusion: Buffer | undefined
  let isOpen = false
  socket.on('message', (packet) => {
    if (!isHandshake(packet)) return
    const { type, cookie } = read(packet)
    isOpen ||= type === handshakeTypes.conclusion
    if (type !== handshakeTypes.induction) return
    conclusion = libraryConclusion({ socketId, cookie, streamId })
    socket.send(conclusion)
  })
  socket.send(handshake({ socketId, version: 4 }))
  const until = performance.now() + openMillisMax
  while (!isOpen && performance.now() < until) {
    await sleep(repeatMillis)
    if (conclusion !== undefined) socket.send(conclusion)
  }
  socket.close()
  if (!isOpen) throw new Error('the connection was not opened')
}
