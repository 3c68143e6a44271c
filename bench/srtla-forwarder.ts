/**
 * The floor of `npm run bench -- bonding`: a receiver as others are, which forwards the packets of all links to one SRT
 * listener, acknowledgements over every link, and other packets over the latest one. Its argument is the port of the
 * listener. Prints its own.
 */
import { createSocket, type Socket } from 'node:dgram'
import type { Peer } from '../relay-node/peer.ts'
import { SrtlaReceiver } from '../relay-node/srtla-receiver.ts'

const listenerPort = Number(process.argv[2])
const bufferBytes = 4 * 1024 * 1024
const links = createSocket('udp4')
const upstream = new Map<Peer, Socket>()

const receiver = new SrtlaReceiver({
  sendTo: (datagram, { port, address }) => links.send(datagram, port, address),
  onSrtPacket(group, datagram) {
    let socket = upstream.get(group)
    if (socket === undefined) {
      socket = createSocket({ type: 'udp4', recvBufferSize: bufferBytes, sendBufferSize: bufferBytes })
      socket.on('message', (answer) => group.send(answer)).on('error', () => {})
      upstream.set(group, socket)
    }
    socket.send(datagram, listenerPort, '127.0.0.1')
  },
  isOfStream: () => false,
  onStranger() {},
  onGroupEnded: (group) => void upstream.get(group)?.close(),
})

links.on('message', (datagram, from) => receiver.receive(datagram, from, performance.now()))
setInterval(() => receiver.sweep(performance.now()), 500)
links.bind(0, '127.0.0.1', () => {
  links.setRecvBufferSize(bufferBytes)
  process.stdout.write(`${links.address().port}\n`)
})
