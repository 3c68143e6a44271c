/**
 * A process that sends datagrams of arbitrary content from 1,000 addresses to UDP ports of this machine, and prints their
 * number: `<ports, comma-separated> <datagrams per second> <seconds>`.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildNotice, buildRegistration } from '../../relay-node/srtla-packets.ts'

const addresses = 1_000
const batchMillis = 5

const [ports, perSecond, seconds] = process.argv.slice(2).map((text) => text.split(',').map(Number))

/** Begins like an SRT handshake, and ends anywhere. */
function truncatedHandshake(): Buffer {
  const header = Buffer.alloc(16)
  header.writeUInt16BE(0x8000, 0)
  return Buffer.concat([header, randomBytes(randomInt(300))])
}

const kinds = [
  truncatedHandshake,
  () => buildRegistration('reg1', randomBytes(256)),
  () => buildRegistration('reg2', randomBytes(256)),
  () => buildNotice('keepalive'),
  () => randomBytes(randomInt(1_500)),
]
// Not as many as addresses, so that an address sends datagrams of all kinds.
const datagrams = kinds.flatMap((build) => Array.from({ length: 199 }, build))

const openSocket = async (port: number) => {
  const socket = createSocket('udp4')
  socket.on('error', () => {})
  socket.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}
const sockets = await Promise.all(
  Array.from({ length: addresses }, (_, index) => openSocket(ports?.[index % ports.length] ?? 0)),
)

const startedAt = performance.now()
const elapsedSeconds = () => (performance.now() - startedAt) / 1_000
let sent = 0
while (elapsedSeconds() < (seconds?.[0] ?? 0)) {
  const due = elapsedSeconds() * (perSecond?.[0] ?? 0)
  for (; sent < due; sent += 1) sockets[sent % addresses]?.send(datagrams[sent % datagrams.length] ?? '', () => {})
  await sleep(batchMillis)
}
process.stdout.write(`${sent}`)
for (const socket of sockets) socket.close()
