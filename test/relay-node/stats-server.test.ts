/** The server of a relay's statistics under many connections. */
import { once } from 'node:events'
import { type RequestOptions, request } from 'node:http'
import { connect, isIPv6 } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { startStatsServer } from '../../relay-node/stats-server.ts'
import { eventually } from './running.ts'

async function givenServer(hosts = ['127.0.0.1']) {
  const server = await startStatsServer({
    hosts,
    port: 0,
    source: {
      showStats: () => ({ ts: 1, engine: 'none', groups: [] }),
      showPublisher: () => ({ status: 'ok', publishers: {} }),
    },
    unknownSince: () => null,
    log: () => {},
  })
  onTestFinished(() => server.close())
  return server
}

async function openSilent(port: number, localAddress = '127.0.0.1') {
  const socket = connect({ port, host: isIPv6(localAddress) ? localAddress : '127.0.0.1', localAddress })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  let isOpen = true
  socket.resume().once('close', () => {
    isOpen = false
  })
  return { isOpen: () => isOpen, socket }
}

/** @returns the status, or the code of the error. */
const ask = (port: number, options: RequestOptions = {}) =>
  new Promise<number | string>((done) => {
    const asked = request({ host: '127.0.0.1', port, path: '/stats', agent: false, ...options }, (reply) => {
      reply.resume().once('end', () => done(reply.statusCode ?? 0))
    })
    asked.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
    asked.end()
  })

test('256 silent connections of one address keep no request out, neither its own nor those of others', async () => {
  const { port } = await givenServer()
  const silent = await Promise.all(Array.from({ length: 256 }, () => openSilent(port)))

  const answers: (number | string)[] = []
  for (let n = 0; n < 8; n += 1) answers.push(await ask(port), await ask(port, { localAddress: '127.0.0.2' }))

  expect(answers).toEqual(Array(16).fill(200))
  // The places of other addresses stay free.
  await eventually(
    () => silent.filter(({ isOpen }) => isOpen()).length,
    (count) => count <= 64,
  )
})

test('at all addresses of both families, 256 silent connections of an IPv4 address leave those of others open', async () => {
  const { port } = await givenServer(['0.0.0.0', '::'])
  const others = [await openSilent(port, '127.0.0.2'), await openSilent(port, '::1')]
  const silent = await Promise.all(Array.from({ length: 256 }, () => openSilent(port)))

  expect([await ask(port), await ask(port, { host: '::1' })]).toEqual([200, 200])
  await eventually(
    () => silent.filter(({ isOpen }) => isOpen()).length,
    (count) => count <= 64,
  )
  expect(others.map(({ isOpen }) => isOpen())).toEqual([true, true])
})

test('silent connections of many addresses give way to those that ask', async () => {
  const { port } = await givenServer()
  const addresses = Array.from({ length: 8 }, (_, n) => `127.0.0.${10 + n}`)
  await Promise.all(addresses.flatMap((address) => Array.from({ length: 40 }, () => openSilent(port, address))))

  const answers = []
  for (let n = 0; n < 8; n += 1) answers.push(await ask(port))

  expect(answers).toEqual(Array(8).fill(200))
})

test('a connection that asks again and again stays open beside new silent ones', async () => {
  const { port } = await givenServer()
  const { socket, isOpen } = await openSilent(port)
  for (let n = 0; n < 200; n += 1) {
    if (n % 40 === 0) {
      socket.write('GET /healthz HTTP/1.1\r\nHost: relay\r\n\r\n')
      await once(socket, 'data')
    }
    await openSilent(port)
  }
  expect(isOpen()).toBe(true)
})

test('a connection without a whole request is closed after a few seconds', async () => {
  const { port } = await givenServer()
  const nothing = await openSilent(port)
  const slow = await openSilent(port)
  slow.socket.write('GET /stats HTTP/1.1\r\nX-Slow: ')

  await eventually(
    () => nothing.isOpen() || slow.isOpen(),
    (isSomeOpen) => !isSomeOpen,
    10_000,
  )
})
