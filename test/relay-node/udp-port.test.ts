/** The UDP ports of a relay, and what cannot be sent through them. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { addressOf } from '../../relay-node/peer.ts'
import { openUdpPort } from '../../relay-node/udp-port.ts'
import { eventually } from './running.ts'
import { givenSocket } from './udp-callers.ts'

const host = '127.0.0.1'

async function givenPort(hosts = [host]) {
  const port = await openUdpPort(hosts, () => {})
  onTestFinished(() => port.close())
  const received: string[] = []
  port.receive((datagram, from) => received.push(`${datagram} from ${addressOf(from)}`))
  return { port, received }
}

async function givenLoggedPort() {
  const logged: string[] = []
  const port = await openUdpPort([host], (level, message, fields) => {
    logged.push(`${level} ${message} ${fields?.error}`)
  })
  onTestFinished(() => port.close())
  return { logged, port }
}

async function givenCaller(address = host) {
  const socket = await givenSocket(address)
  const { port } = socket.address()
  return { socket, remote: { address, port, family: isIPv6(address) ? 'IPv6' : 'IPv4' } as const }
}

test.each([
  [[host], [host]],
  [['0.0.0.0'], [host]],
  [['::1'], ['::1']],
  [
    ['0.0.0.0', '::'],
    [host, '::1'],
  ],
])('at %j, datagrams of isolated remotes and of others at %j arrive, and answers return', async (hosts, addresses) => {
  const { port, received } = await givenPort(hosts)
  const [admitted, strangers] = await Promise.all(
    [1, 2].map(() => Promise.all(addresses.map((address) => givenCaller(address)))),
  )
  port.isolate(admitted?.map(({ remote }) => remote) ?? [])
  const callers = [...(admitted ?? []), ...(strangers ?? [])]

  for (const { socket, remote } of callers) socket.send('hello', port.port, remote.address)
  await eventually(
    () => received.toSorted(),
    (all) => all.length === callers.length,
  )
  expect(received.toSorted()).toEqual(callers.map(({ remote }) => `hello from ${addressOf(remote)}`).toSorted())
  for (const { socket, remote } of callers) {
    const answer = once(socket, 'message')
    port.send(Buffer.from('welcome'), remote)
    expect(`${(await answer)[0]}`).toBe('welcome')
  }
})

/** The connected sockets of a port, in the tables of Linux. */
const connectedSockets = (port: number) =>
  ['udp', 'udp6'].flatMap((family) =>
    readFileSync(`/proc/net/${family}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(
        ([, local, remote]) => local?.endsWith(`:${port.toString(16).toUpperCase()}`) && !remote?.endsWith(':0000'),
      )
      .map(() => family),
  )

test.runIf(process.platform === 'linux')('an isolated remote of each family has a socket of its own', async () => {
  const { port } = await givenPort(['0.0.0.0', '::'])
  const [ipv4, ipv6] = [await givenCaller(), await givenCaller('::1')]
  port.isolate([ipv4.remote, ipv6.remote])
  expect(connectedSockets(port.port)).toEqual(['udp', 'udp6'])
  port.isolate([ipv6.remote])
  await eventually(
    () => connectedSockets(port.port),
    (sockets) => sockets.length === 1 && sockets[0] === 'udp6',
  )
})

test('a remote of a family without an address here gets nothing, and harms no other', async () => {
  const { port, received } = await givenPort()
  const caller = await givenCaller()
  const other = { address: '::1', port: 5000, family: 'IPv6' } as const
  port.isolate([other])
  port.send(Buffer.from('lost'), other)
  caller.socket.send('hello', port.port, host)
  await eventually(
    () => received,
    (all) => all.length === 1,
  )
})

test('a fixed port that is taken for one family is an error, and stays free for the other', async () => {
  const taken = await openUdpPort(['::'], () => {})
  onTestFinished(() => taken.close())
  await expect(openUdpPort(['0.0.0.0', '::'], () => {}, taken.port)).rejects.toThrow('EADDRINUSE')
  const free = await openUdpPort(['0.0.0.0'], () => {}, taken.port)
  await free.close()
})

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
  const probe = await openUdpPort([host], () => {})
  const { port } = probe
  await expect(openUdpPort([host], () => {}, port)).rejects.toThrow('EADDRINUSE')
  await probe.close()

  const fixed = await openUdpPort([host], () => {}, port)
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
