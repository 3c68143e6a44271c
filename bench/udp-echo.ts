/** The floor of the video path: sends every datagram back. Prints its port. */
import { createSocket } from 'node:dgram'

const socket = createSocket({
  type: 'udp4',
  lookup: (address, _options, callback) => callback(null, address, 4),
})
socket.on('message', (datagram, from) => socket.send(datagram, from.port, from.address))
socket.once('listening', () => {
  socket.setRecvBufferSize(4 * 1024 * 1024)
  process.stdout.write(`${socket.address().port}\n`)
})
setImmediate(() => socket.bind(0, '127.0.0.1'))
