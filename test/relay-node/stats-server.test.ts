/** The server of a relay's statistics under many connections. */
import { once } from 'node:events'
import { type RequestOptions, request } from 'node:http'
import { connect, isIPv6 } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { issueLinksTicket } from '../../platform/links-tickets.ts'
import { type LinkStats, noTimeline } from '../../relay-node/stats.ts'
import { startStatsServer } from '../../relay-node/stats-server.ts'
import { eventually } from './running.ts'

const link: LinkStats = {
  id: 'link-1',
  addr: '198.51.100.7:5000',
  bytes: 1_000,
  pkts: 10,
  share_pct: 100,
  last_ms_ago: 10,
  uptime_s: 60,
  late_ms: 0,
  repeat_pct: 12,
  verdict: 'weak',
  reason: 'lossy',
}

async function givenServer(hosts = ['127.0.0.1'], sessionId: string | undefined = undefined) {
  const server = await startStatsServer({
    hosts,
    port: 0,
    source: {
      showStats: () => ({ ts: 1, engine: 'none', groups: [], timeline: noTimeline }),
      showPublisher: () => ({ status: 'ok', publishers: {} }),
      showPublisherTo: (key) => (key === 'key-of-the-relay' ? { status: 'ok', publishers: {} } : undefined),
      showLinks: () => [link],
    },
    instanceId: 'i-1',
    unknownSince: () => null,
    owner: { secret: 'of this instance', sessionId: () => sessionId },
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

describe('the page about links', () => {
  const session = '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10'
  const ticket = issueLinksTicket(['of this instance'], session, Date.now())
  const open = (port: number, path: string) => fetch(`http://127.0.0.1:${port}${path}`)
  const keyIn = (page: string) => /data-key="([\w-]+)"/.exec(page)?.[1] ?? ''

  test('opens with a ticket, and reads the links with the key in it', async () => {
    const { port } = await givenServer(undefined, session)
    const page = await open(port, `/links?ticket=${ticket}`)
    expect(page.status).toBe(200)
    const data = await open(port, `/links/data?key=${keyIn(await page.text())}`)
    expect(await data.json()).toEqual({ links: [{ ...link, sentence: 'Link 1 is weak: it repeats 12 %.' }] })
  })

  test('runs no script but its own, and pages of other origins read nothing of it', async () => {
    const { port } = await givenServer(undefined, session)
    const page = await open(port, `/links?ticket=${ticket}`)
    const policy = page.headers.get('content-security-policy') ?? ''
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)?.[1]
    expect(await page.text()).toContain(`<script nonce="${nonce}">`)
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    for (const path of [`/links?ticket=${ticket}`, '/links', '/links/data']) {
      const { headers } = await open(port, path)
      expect(headers.get('access-control-allow-origin')).toBeNull()
      expect(headers.get('cache-control')).toBe('no-store')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test.each([
    ['without a ticket', '/links'],
    ['with one of another relay', `/links?ticket=${issueLinksTicket(['of another'], session, Date.now())}`],
    ['with one that has ended', `/links?ticket=${issueLinksTicket(['of this instance'], session, 0)}`],
    ['with a wrong key', '/links/data?key=x'],
    ['without a key', '/links/data'],
  ])('is refused %s', async (_, path) => {
    const { port } = await givenServer(undefined, session)
    const reply = await open(port, path)
    expect(reply.status).toBe(403)
    const text = await reply.text()
    expect(text).toContain('Open it again from your relays page')
    expect(text).not.toContain(link.addr)
  })

  test('is refused by a relay without a session', async () => {
    const { port } = await givenServer()
    expect((await open(port, `/links?ticket=${ticket}`)).status).toBe(403)
  })
})
