/** The UDP ports of a relay, and what cannot be sent through them. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { openUdpPort } from '../../relay-node/udp-port.ts'
import { eventually } from './running.ts'

const host = '127.0.0.1'

async function givenPort(boundHost = host) {
  const port = await openUdpPort(boundHost, () => {})
  onTestFinished(() => port.close())
  const received: string[] = []
  port.receive((datagram, from) => received.push(`${datagram} from ${from.port}`))
  return { port, received }
}

async function givenLoggedPort() {
  const logged: string[] = []
  const port = await openUdpPort(host, (level, message, fields) => {
    logged.push(`${level} ${message} ${fields?.error}`)
  })
  onTestFinished(() => port.close())
  return { logged, port }
}

async function givenCaller() {
  const socket = createSocket('udp4').bind(0, host)
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { socket, remote: { ...socket.address(), family: 'IPv4' } as const }
}

test.each([host, '0.0.0.0'])(
  'at %s, datagrams of isolated remotes and of others arrive, and answers return',
  async (at) => {
    const { port, received } = await givenPort(at)
    const [admitted, stranger] = [await givenCaller(), await givenCaller()]
    port.isolate([admitted.remote])

    for (const { socket } of [admitted, stranger]) socket.send('hello', port.port, host)
    await eventually(
      () => received.toSorted(),
      (all) => all.length === 2,
    )
    expect(received.toSorted()).toEqual(
      [admitted, stranger].map(({ remote }) => `hello from ${remote.port}`).toSorted(),
    )
    for (const { socket, remote } of [admitted, stranger]) {
      const answer = once(socket, 'message')
      port.send(Buffer.from('welcome'), remote)
      expect(`${(await answer)[0]}`).toBe('welcome')
    }
  },
)

test('a remote without a route cannot be isolated, and harms no other', async () => {
  const { port, received } = await givenPort()
  const caller = await givenCaller()
  // The loopback address has no route to it.
  const unreachable = { address: '192.0.2.1', port: 5000, family: 'IPv4' } as const

  port.isolate([unreachable])
  port.send(Buffer.from('lost'), unreachable)
  caller.socket.send('hello', port.port, host)

  await eventually(
    () => received,
    (all) => all.length === 1,
  )
})

test('a fixed port is bound, and one that is taken is an error', async () => {
  const probe = await openUdpPort(host, () => {})
  const { port } = probe
  await expect(openUdpPort(host, () => {}, port)).rejects.toThrow('EADDRINUSE')
  await probe.close()

  const fixed = await openUdpPort(host, () => {}, port)
  onTestFinished(() => fixed.close())
  expect(fixed.port).toBe(port)
})

test('what a handler throws is logged, and later datagrams are handled', async () => {
  const { logged, port } = await givenLoggedPort()
  const handled: string[] = []
  port.receive((datagram) => {
    handled.push(`${datagram}`)
    if (`${datagram}` === 'bad') throw new Error('a fault of the program')
  })
  const { socket } = await givenCaller()
  for (const text of ['bad', 'bad', 'good']) socket.send(text, port.port, host)

  await eventually(
    () => handled,
    (all) => all.length === 3,
  )
  expect(logged).toEqual([expect.stringMatching(/^error a datagram could not be handled .*a fault of the program/s)])
})

test('what cannot be sent is logged once, without an exception, and later datagrams are sent', async () => {
  const { logged, port } = await givenLoggedPort()
  const { socket, remote } = await givenCaller()
  for (const impossible of [0, -1, 70_000, Number.NaN])
    port.send(Buffer.from('lost'), { address: '198.51.100.7', port: impossible, family: 'IPv4' })
  const answer = once(socket, 'message')
  port.send(Buffer.from('welcome'), remote)

  expect(`${(await answer)[0]}`).toBe('welcome')
  expect(logged).toEqual([expect.stringMatching(/^error a datagram could not be sent .*Port should be/s)])
})
