/**
 * Attacks below the application: slow and malformed requests, other spellings of paths, and headers that applications
 * trust.
 */
import type { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pages } from '../../web/pages.ts'
import { type GivenUser, signUp } from '../support/api.ts'
import { eventually } from '../support/relays.ts'
import { inParallel, nameOf, operations, pathOf, sendOperation } from './operations.ts'
import { converse, isClosed, openConnection, requestPath, statusesIn } from './raw-connections.ts'
import { startAttackedService } from './service.ts'

const service = await startAttackedService({ with: ['site'] })
const { api, siteUrl } = service
const servers = [
  ['API', api.url],
  ['site', siteUrl],
] as const

/** The start of a request whose rest never comes, or nothing at all. */
const beginningsOf = ({ host }: URL): readonly string[] => {
  const post = `POST /api/v1/auth/login HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`
  return [
    ...Array<string>(150).fill(`GET /livez HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `),
    ...Array<string>(50).fill(`${post}Content-Length: 50\r\n\r\n{`),
    ...Array<string>(50).fill(`${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n`),
    ...Array<string>(50).fill(''),
  ]
}

let user: GivenUser

const slowConnections: Socket[] = []

// Opened first and awaited last, since their limits take half a minute.
beforeAll(async () => {
  user = await signUp(api)
  for (const [, url] of servers)
    for (const beginning of beginningsOf(new URL(url))) {
      const socket = await openConnection(url)
      socket.resume().write(beginning)
      slowConnections.push(socket)
    }
})

afterAll(() => {
  for (const socket of slowConnections) socket.destroy()
})

const countOpen = (): number => slowConnections.filter((socket) => !isClosed(socket)).length

describe.each(servers)('the %s', (_, url) => {
  const { host } = new URL(url)

  test('answers others while 300 connections send nothing', async () => {
    const answers = await inParallel(Array(50).fill('/livez'), (path) => fetch(url + path))
    expect(answers.filter(({ status }) => status !== 200)).toEqual([])
    expect(countOpen()).toBeGreaterThan(0)
  })

  const smuggled = `GET /api/v1/smuggled HTTP/1.1\r\nHost: ${host}\r\n\r\n`
  const post = `POST /api/v1/auth/login HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\n`
  const malformed: Readonly<Record<string, string>> = {
    'both Transfer-Encoding and Content-Length': `${post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'two lengths': `${post}Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
    'a list of lengths': `${post}Content-Length: 0, 0\r\n\r\n${smuggled}`,
    'a signed length': `${post}Content-Length: +2\r\n\r\n{}${smuggled}`,
    'a negative length': `${post}Content-Length: -2\r\n\r\n{}${smuggled}`,
    'a hexadecimal length': `${post}Content-Length: 0x2\r\n\r\n{}${smuggled}`,
    'a length beyond 64 bits': `${post}Content-Length: 18446744073709551618\r\n\r\n{}${smuggled}`,
    'a space before a colon': `${post}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'an encoding that only contains chunked': `${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'chunked before another encoding': `${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    'a folded header': `${post}Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${smuggled}`,
    'a NUL in a header': `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX-Nul: a\0b\r\n\r\n${smuggled}`,
    'a bare CR in a header': `GET /livez HTTP/1.1\r\nHost: ${host}\r\nX-Cr: a\rX-Other: b\r\n\r\n${smuggled}`,
    'a chunk size that is no number': `${post}Transfer-Encoding: chunked\r\n\r\nz\r\n{}\r\n0\r\n\r\n${smuggled}`,
    'a chunk size beyond 64 bits': `${post}Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\n{}\r\n0\r\n\r\n${smuggled}`,
    'no header name': `GET /livez HTTP/1.1\r\nHost: ${host}\r\n: x\r\n\r\n${smuggled}`,
    'a space in its target': `GET /livez /x HTTP/1.1\r\nHost: ${host}\r\n\r\n${smuggled}`,
    'the version 9': `GET /livez HTTP/9.9\r\nHost: ${host}\r\n\r\n${smuggled}`,
    'no version': `GET /livez\r\n\r\n${smuggled}`,
    'an unknown method': `SMUGGLE /livez HTTP/1.1\r\nHost: ${host}\r\n\r\n${smuggled}`,
    '64 KB of headers': `GET /livez HTTP/1.1\r\nHost: ${host}\r\n${'X-Large: 0123456789\r\n'.repeat(3500)}\r\n${smuggled}`,
    'the beginning of a TLS connection': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  }

  test.each(Object.keys(malformed))(
    'closes the connection of a request with %s, and answers no second one',
    async (name) => {
      const statuses = statusesIn(await converse(url, malformed[name] ?? ''))
      expect(statuses.length).toBeLessThanOrEqual(1)
      expect(statuses.filter((status) => status < 400 || status >= 500)).toEqual([])
    },
  )

  test('answers every pipelined request once and in order', async () => {
    const paths = Array.from({ length: 100 }, (_, index) => (index % 2 ? '/livez' : '/missing'))
    const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`).join('')
    const end = `GET /missing HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
    const statuses = statusesIn(await converse(url, requests + end))
    expect(statuses).toEqual([...paths.map((path) => (path === '/livez' ? 200 : 404)), 404])
  })

  test('keeps no listeners of requests that ask for another protocol on one connection', async () => {
    const upgrade = `GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n`
    const socket = await openConnection(url)
    let received = ''
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
    })
    for (let count = 1; count <= 30; count += 1) {
      socket.write(upgrade)
      await eventually(
        () => statusesIn(received).length,
        (answered) => answered >= count,
      )
    }
    socket.destroy()
    expect(statusesIn(received)).toEqual(Array(30).fill(200))
    expect(service.logged()).not.toContain('MaxListenersExceededWarning')
  })
})

const spellingsOf = (path: string): string[] => [
  `${path}/`,
  `/${path}`,
  path.replace('/api/', '//api//'),
  path.replace('/api/v1/', '/api/v1//'),
  path.replace('/api/v1/', '/api/v1/./'),
  path.replace('/api/v1/', '/api/v1/x/../'),
  path.replace('/api/v1/', '/api/v1/%2e%2e/v1/'),
  path.replace('/api/v1/', '/api%2fv1%2f'),
  path.replace('/api/v1/', '/api\\v1\\'),
  path.replace('/api/v1/', '/API/V1/'),
  path.replace('/api/v1/', '/api/v1;x=1/'),
  path.replace(/^(.*\/)(\w)/, (_, start: string, letter: string) => `${start}%${letter.charCodeAt(0).toString(16)}`),
  path.replace(/[a-z]+$/, (last) => last.toUpperCase()),
  `${path};.css`,
  `${path}%00`,
  `${path}%20`,
  `${path}.json`,
  `${path}%23`,
  `http://other.example${path}`,
]

describe('another spelling of a path', () => {
  test('opens no operation that requires credentials', async () => {
    const targets = operations.filter(({ isPublic }) => !isPublic)
    const attacks = targets.flatMap((operation) =>
      spellingsOf(pathOf(operation)).map((path) => ({ path, method: operation.method })),
    )
    const outcomes = await inParallel(attacks, async ({ path, method }) => ({
      path,
      method,
      ...(await requestPath(api.url, path, { method })),
    }))
    expect(outcomes.filter(({ status }) => ![400, 401, 404, 405].includes(status))).toEqual([])
  })

  test('reaches no operation of operators, relays and billing providers through the site', async () => {
    const targets = operations.filter(({ template }) =>
      /^\/api\/v1\/(admin|relay\/health|billing\/webhook|mailbox)/.test(template),
    )
    expect(targets.length).toBeGreaterThan(25)
    const attacks = targets.flatMap((operation) =>
      [pathOf(operation), ...spellingsOf(pathOf(operation))].map((path) => ({ path, method: operation.method })),
    )
    const outcomes = await inParallel(attacks, async ({ path, method }) => ({
      path,
      method,
      ...(await requestPath(siteUrl, path, { method, headers: { 'Sec-Fetch-Site': 'same-origin' } })),
    }))
    // 401 would be an answer of the API.
    expect(outcomes.filter(({ status }) => ![400, 404, 405].includes(status))).toEqual([])
  })

  test.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL'])(
    'and another method in %s are ignored',
    async (header) => {
      const { bearer } = user
      const value = header.includes('URL') ? '/api/v1/admin/jobs' : 'DELETE'
      const headers = { Authorization: `Bearer ${bearer}`, [header]: value }
      const answer = await api.get<{ sessions: unknown[] }>('/auth/sessions?_method=DELETE', { headers })
      expect([answer.status, answer.body.sessions.length]).toEqual([200, 1])
    },
  )
})

describe('a host that an attacker chooses', () => {
  const evil = 'evil.example'
  const headers = {
    Host: evil,
    'X-Forwarded-Host': evil,
    'X-Forwarded-Server': evil,
    'X-Original-Host': evil,
    'X-Forwarded-Proto': 'http',
    Forwarded: `host=${evil};proto=http`,
  }

  test('is in no answer of the API', async () => {
    const reads = operations.filter(({ method }) => method === 'GET')
    const outcomes = await inParallel(['/docs', ...reads.map((operation) => pathOf(operation))], async (path) => ({
      path,
      ...(await requestPath(api.url, path, { headers })),
    }))
    expect(outcomes.filter((outcome) => JSON.stringify(outcome).includes(evil))).toEqual([])
  })

  test('is in no page of the site', async () => {
    const reads = pages.filter(({ method }) => method === 'GET').map(({ path }) => path.replaceAll(/:\w+/g, 'x'))
    expect(reads.length).toBeGreaterThan(30)
    const outcomes = await inParallel(reads, async (path) => ({
      path,
      ...(await requestPath(siteUrl, path, { headers })),
    }))
    expect(outcomes.filter((outcome) => JSON.stringify(outcome).includes(evil))).toEqual([])
  })

  test('is in no link of a mail and in no address of a login', async () => {
    const { email } = user
    const type = { 'Content-Type': 'application/json', ...headers }
    const send = (path: string, body: object) =>
      requestPath(api.url, `/api/v1${path}`, { method: 'POST', headers: type, body: JSON.stringify(body) })
    expect((await send('/auth/password/forgot', { email })).status).toBe(202)
    const login = await send('/auth/plugin/login/start', {})
    expect(JSON.parse(login.text).authorize_url).toMatch(new RegExp(`^${siteUrl}/login\\?`))
    await eventually(
      () => service.logged(),
      (logged) => logged.includes(`${siteUrl}/reset-password`),
    )
    expect(service.logged()).not.toContain(evil)
  })
})

describe('a header that an attacker chooses', () => {
  test('is not repeated as the id of the request', async () => {
    for (const [, url] of servers) {
      const { headers } = await fetch(`${url}/livez`, { headers: { 'X-Request-Id': 'chosen' } })
      expect(headers.get('x-request-id')).not.toBe('chosen')
    }
  })

  test.each(['%0d%0aX-Injected:1', '%0aX-Injected:1', '%E5%98%8D%E5%98%8AX-Injected:1', '%00X-Injected:1'])(
    'in no query or path becomes a header of an answer: %s',
    async (payload) => {
      const names = ['next', 'to', 'return_to', 'attempt', 'token', 'code', 'state', 'error', 'cursor', 'connection_id']
      const query = names.map((name) => `${name}=/x${payload}`).join('&')
      const targets = pages.map(({ method, path }) => ({ method, path: path.replaceAll(/:\w+/g, `x${payload}`) }))
      const headers = { 'Sec-Fetch-Site': 'same-origin' }
      const answers = await inParallel(targets, ({ method, path }) =>
        requestPath(siteUrl, `${path}?${query}`, { method, headers }),
      )
      expect(answers.filter(({ headers: received }) => 'x-injected' in received)).toEqual([])
      expect(answers.filter(({ status }) => status >= 500)).toEqual([])
    },
  )

  test('does not exempt an operation from its credentials', async () => {
    const headers = {
      'X-Forwarded-User': 'operator',
      'X-Remote-User': 'operator',
      'X-User-Id': '1',
      'X-Unattended': '1',
      'X-Forwarded-For': '127.0.0.1',
      'X-Client-Verify': 'SUCCESS',
    }
    const targets = operations.filter(({ isPublic }) => !isPublic)
    const outcomes = await inParallel(targets, async (operation) => ({
      name: nameOf(operation),
      status: (await sendOperation(api.url, operation, { headers })).status,
    }))
    expect(outcomes.filter(({ status }) => status !== 401)).toEqual([])
  })
})

test('connections whose request does not come are closed by both servers', async () => {
  expect(await eventually(countOpen, (count) => count === 0, 60)).toBe(0)
  for (const [, url] of servers) expect((await fetch(`${url}/livez`)).status).toBe(200)
})
