/** What every response of the API has in common: the form of errors, headers, limits of bodies. */
import { randomBytes, randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { routes } from '../../../api/routes.ts'
import { type ErrorBody, startApi, type TestApi } from '../../support/api.ts'
import { propertyRuns } from '../../support/property-runs.ts'

const operatorPassword = 'an operator of these tests'
const relaySecret = randomBytes(48).toString('base64')
const operator = { Authorization: `Basic ${Buffer.from(`operator:${operatorPassword}`).toString('base64')}` }
const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword, SVC_RELAY_AUTH_SECRET: relaySecret })
const user = await api.given.user()

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

interface FullResponse {
  readonly status: number
  readonly code: string | undefined
  readonly headers: Headers
  readonly text: string
}

/** Requests any path, below the base path or not. */
async function ask(path: string, request: RequestInit = {}, at: TestApi = api): Promise<FullResponse> {
  const response = await fetch(`${at.url}${path}`, request)
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  const code = isJson && text !== '' ? (JSON.parse(text) as Partial<ErrorBody>).error?.code : undefined
  return { status: response.status, code, headers: response.headers, text }
}

const outcome = ({ status, code }: FullResponse) => [status, code]

/** Sends raw bytes that no client library would send, closes the connection, and returns the response. */
const raw = (bytes: string | Buffer, at: TestApi = api): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const socket = connect(Number(new URL(at.url).port), '127.0.0.1', () => socket.end(bytes))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', reject)
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')))
  })

function expectRefusal(answer: string, status: number, code: string): void {
  const [head = '', body = ''] = answer.split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
  expect(head).toMatch(/^x-request-id: [0-9a-f-]{36}$/im)
  expect(JSON.parse(body)).toEqual({ error: { code, message: expect.any(String) } })
}

const login = '/api/v1/auth/login'
const postJson = (path: string, body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
  ask(path, { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers } })

describe('an error response', () => {
  test.each([
    ['/api/v1/nowhere', {}, 404, 'not_found'],
    ['/api/v1/relay/start', {}, 405, 'method_not_allowed'],
    ['/api/v1/auth/session', {}, 401, 'unauthorized'],
    [login, { method: 'POST', body: '{', headers: { 'Content-Type': 'application/json' } }, 400, 'invalid_request'],
    [login, { method: 'POST', body: 'hello' }, 415, 'unsupported_media_type'],
  ])('for %s has exactly a code and a message, and a unique request id', async (path, request, status, code) => {
    const [first, second] = [await ask(path, request), await ask(path, request)]
    expect(outcome(first)).toEqual([status, code])
    expect(JSON.parse(first.text)).toEqual({ error: { code, message: expect.stringMatching(/./) } })
    expect(first.headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(first.headers.get('x-request-id')).toMatch(uuidPattern)
    expect(first.headers.get('x-request-id')).not.toBe(second.headers.get('x-request-id'))
  })

  test('for an unexpected error reveals no details, which are in the log', async () => {
    const broken = await startApi()
    await broken.sql`alter table workers rename to workers_away`
    await broken.sql`alter table relay_sessions rename to relay_sessions_away`
    const answer = await ask('/api/v1/capacity/status', {}, broken)
    expect(outcome(answer)).toEqual([500, 'internal_error'])
    expect(answer.text).not.toMatch(/relay_sessions|relation/)
    const id = answer.headers.get('x-request-id') ?? ''
    expect(broken.logged.filter((line) => line.includes(id)).join()).toMatch(/relation .*relay_sessions/)
  })
})

test('every response has a request id and security headers', async () => {
  for (const path of ['/livez', '/docs', '/api/v1/capacity/status', '/api/v1/nowhere', '/nowhere']) {
    const { headers } = await ask(path)
    expect(headers.get('x-request-id')).toMatch(uuidPattern)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('strict-transport-security')).toMatch(/max-age=\d{8}/)
    expect(headers.get('content-security-policy')).toMatch(/^default-src 'none';.*frame-ancestors 'none'/)
    expect(headers.get('x-powered-by')).toBeNull()
  }
})

describe('an unsupported method of a known path', () => {
  test.each([
    ['DELETE', '/api/v1/relay/start', 'POST'],
    ['POST', '/api/v1/relay/active', 'GET, HEAD'],
    ['PUT', '/api/v1/auth/login', 'POST'],
    ['OPTIONS', '/api/v1/auth/session', 'GET, HEAD'],
    ['GET', `/api/v1/auth/sessions/${randomUUID()}`, 'DELETE'],
    ['PATCH', `/api/v1/admin/sessions/${randomUUID()}`, 'GET, HEAD'],
    ['POST', '/health', 'GET, HEAD'],
    // Other routes have a parameter in the place of these last segments.
    ['DELETE', '/api/v1/auth/sessions/revoke-others', 'POST'],
    ['DELETE', '/api/v1/auth/oauth/providers', 'GET, HEAD'],
    ['PROPFIND', '/api/v1/relay/stop', 'POST'],
  ])('%s %s is refused with Allow: %s', async (method, path, allow) => {
    const answer = await ask(path, { method })
    expect(outcome(answer)).toEqual([405, 'method_not_allowed'])
    expect(answer.headers.get('allow')).toBe(allow)
  })
})

describe('a path that resembles a route', () => {
  test.each([
    '/api/v1/relay/active/',
    '/api/v1/RELAY/active',
    '/api/v1/relay%2Factive',
    '/api/v1//relay/active',
    '//api/v1/relay/active',
    '/api/v1/relay/%ZZ',
    '/api/v1/relay/%00',
    '/api/v1/admin/users/%00',
    '/api/v1/admin/users/%ZZ/grant',
    '/api/v1/auth/sessions/%FF%FE',
    '/api/v1/auth/plugin/login/attempts/..%2F..%2Fsession',
    `/api/v1/${'a'.repeat(12_000)}`,
    `/api/v1${'/a'.repeat(6000)}`,
    '/api/v1',
    '/',
    '/.env',
    '/api/v1/__proto__',
    '/api/v1/constructor',
  ])('%s is not found', async (path) => {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status } = await ask(path, { method, headers: operator })
      expect([401, 404, 405]).toContain(status)
    }
  })

  test.each(['/api/v1/admin/users/no-uuid', '/api/v1/admin/sessions/%00', '/api/v1/admin/sessions/1'])(
    '%s has an impossible parameter and is not found',
    async (path) => expect(outcome(await ask(path, { headers: operator }))).toEqual([404, 'not_found']),
  )
})

describe('a body', () => {
  test.each([
    ['[]', 400],
    ['null', 400],
    ['7', 400],
    ['"text"', 400],
    ['true', 400],
    ['{"email":', 400],
    ["{'email':'a'}", 400],
    ['{"email":"a@b.example","password":"x"} {}', 400],
    ['\ufeff', 400],
    ['{}', 400],
    ['{"email":{"$ne":1},"password":["x"]}', 400],
    ['{"__proto__":{"email":"a@b.example","password":"x"}}', 400],
    ['{"constructor":{"prototype":{"email":"a@b.example"}}}', 400],
    [`${'['.repeat(30_000)}`, 400],
    [`{"email":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, 400],
    [`{"email":"a@b.example","password":"x","more":${'{"a":'.repeat(8000)}1${'}'.repeat(8000)}}`, 401],
    ['{"email":"a@b.example","password":"x","id":1e999,"toString":null,"hasOwnProperty":1}', 401],
  ])('%.40s is answered with %i', async (body, status) => {
    const answer = await postJson(login, body)
    expect(answer.status).toBe(status)
    if (status === 400) expect(answer.code).toBe('invalid_request')
  })

  /** JSON with the given bytes inside a string. */
  const naming = (bytes: readonly number[]) =>
    Buffer.concat([Buffer.from('{"client_name":"OBS '), Buffer.from(bytes), Buffer.from('"}')])
  const startPlugin = '/api/v1/auth/plugin/login/start'

  test.each([
    ['Latin-1', naming([0xe9])],
    ['a truncated character', naming([0xe2, 0x82])],
    ['an overlong form', naming([0xc0, 0xaf])],
    ['a surrogate', naming([0xed, 0xa0, 0x80])],
    ['a code point beyond Unicode', naming([0xf5, 0x80, 0x80, 0x80])],
    ['a UTF-16 byte order mark', Buffer.from([0xff, 0xfe, 0x7b, 0x7d])],
    ['a body cut in the middle of a character', Buffer.from('{"email":"\u00e9"}').subarray(0, 11)],
  ])('that is not UTF-8 (%s) is a bad request, compressed or not', async (_, bytes) => {
    expect(outcome(await postJson(startPlugin, bytes))).toEqual([400, 'invalid_request'])
    const packed = await postJson(startPlugin, gzipSync(bytes), { 'Content-Encoding': 'gzip' })
    expect(outcome(packed)).toEqual([400, 'invalid_request'])
  })

  test('keeps every character of its strings, including the replacement character', async () => {
    for (const name of ['crème', '🐎', 'a\ufffdb', '日本語'])
      for (const [body, headers] of [
        [Buffer.from(JSON.stringify({ client_name: name })), {}],
        [gzipSync(JSON.stringify({ client_name: name })), { 'Content-Encoding': 'gzip' }],
      ] as const) {
        const { text } = await postJson(startPlugin, body, headers)
        const { login_attempt_id: id } = JSON.parse(text) as { login_attempt_id: string }
        const seen = await api.get<{ client_name: string }>(`/auth/plugin/login/attempts/${id}`, {
          bearer: user.bearer,
        })
        expect(seen.body.client_name).toBe(name)
      }
  })

  test.each([
    ['utf-16', 415],
    ['utf-16le', 415],
    ['iso-8859-1', 415],
    ['nonsense', 415],
    ['UTF-8', 401],
    ['us-ascii', 401],
  ])('with the charset %s is answered with %i', async (charset, status) => {
    const body = '{"email":"a@b.example","password":"x"}'
    const bytes = charset.startsWith('utf-16') ? Buffer.from(body, 'utf16le') : Buffer.from(body)
    const answer = await postJson(login, bytes, { 'Content-Type': `application/json; charset=${charset}` })
    expect(answer.status).toBe(status)
  })

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'nonsense', ''])(
    'with the content type "%s" is refused',
    async (type) => {
      const answer = await ask(login, { method: 'POST', body: Buffer.from('a=b'), headers: { 'Content-Type': type } })
      expect(outcome(answer)).toEqual([415, 'unsupported_media_type'])
    },
  )

  test('may declare its charset', async () => {
    const answer = await postJson(login, '{"email":"a@b.example","password":"x"}', {
      'Content-Type': 'application/json; charset=utf-8',
    })
    expect(outcome(answer)).toEqual([401, 'invalid_credentials'])
  })

  test('of 64 KiB is accepted and one more byte is not', async () => {
    const around = (length: number) => `{"email":"a@b.example","password":"${'x'.repeat(length - 37)}"}`
    expect(around(65_536)).toHaveLength(65_536)
    expect(outcome(await postJson(login, around(65_536)))).toEqual([401, 'invalid_credentials'])
    expect(outcome(await postJson(login, around(65_537)))).toEqual([413, 'payload_too_large'])
  })

  test('of many megabytes gets a response, with and without a Content-Length', async () => {
    const body = Buffer.alloc(8 * 1024 * 1024, 0x20)
    expect(outcome(await postJson(login, body))).toEqual([413, 'payload_too_large'])
    const streamed = await ask(login, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit)
    expect(outcome(streamed)).toEqual([413, 'payload_too_large'])
  })

  test('that decompresses to more than 64 KiB is too large', async () => {
    const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, 0x20))
    expect(bomb.length).toBeLessThan(60_000)
    const answer = await postJson(login, bomb, { 'Content-Encoding': 'gzip' })
    expect(outcome(answer)).toEqual([413, 'payload_too_large'])
  })

  test('may be compressed if its Content-Encoding is right', async () => {
    const packed = gzipSync('{"email":"a@b.example","password":"x"}')
    expect((await postJson(login, packed, { 'Content-Encoding': 'gzip' })).status).toBe(401)
    expect((await postJson(login, '{"a":1}', { 'Content-Encoding': 'gzip' })).status).toBe(400)
    expect((await postJson(login, packed.subarray(0, 20), { 'Content-Encoding': 'gzip' })).status).toBe(400)
    expect(outcome(await postJson(login, '{}', { 'Content-Encoding': 'zstd' }))).toEqual([
      415,
      'unsupported_media_type',
    ])
  })

  test('that is absent or empty counts as an object without fields', async () => {
    for (const request of [
      { method: 'POST' },
      { method: 'POST', headers: { 'Content-Type': 'application/json' } },
      { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '' },
    ]) {
      expect((await ask('/api/v1/auth/plugin/login/start', request)).status).toBe(201)
      expect(outcome(await ask(login, request))).toEqual([400, 'invalid_request'])
    }
  })

  test('that never arrives completely does not delay the next request', async () => {
    const socket = connect(Number(new URL(api.url).port), '127.0.0.1')
    socket.write(
      `POST ${login} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"email"`,
    )
    expect((await ask('/livez')).status).toBe(200)
    socket.destroy()
    expect((await ask('/livez')).status).toBe(200)
  })

  test('may have unknown keys, which are ignored', async () => {
    const answer = await postJson('/api/v1/auth/plugin/login/start', '{"client_name":"x","more":{"a":[1]},"é":null}')
    expect(answer.status).toBe(201)
  })
})

describe('an invalid HTTP request', () => {
  test.each([
    ['garbage', 'hello\r\n\r\n'],
    ['TLS', Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03])],
    ['an unknown method', 'FETCH /livez HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['two Content-Length headers', 'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    [
      'a Content-Length with chunked encoding',
      'POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a NUL in the path', 'GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a header without a name', 'GET /livez HTTP/1.1\r\n: x\r\n\r\n'],
    ['headers that are too long', `GET /livez HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(40_000)}\r\n\r\n`],
    ['a path that is too long', `GET /${'a'.repeat(40_000)} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ['no Host header', 'GET /livez HTTP/1.1\r\n\r\n'],
    ['an invalid URL', 'GET http://[ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
  ])('(%s) gets an error in the form of the contract', async (_, bytes) => {
    expectRefusal(await raw(bytes), 400, 'invalid_request')
    expect((await ask('/livez')).status).toBe(200)
  })

  test('an unknown expectation or protocol upgrade is ignored', async () => {
    for (const line of ['Expect: a-miracle', 'Upgrade: h2c\r\nConnection: Upgrade'])
      expect(await raw(`GET /livez HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

test('no response of a route with secrets may be cached, not even a refusal', async () => {
  const bearer = { Authorization: `Bearer ${user.bearer}` }
  for (const [path, request] of [
    [login, { method: 'POST' }],
    ['/api/v1/auth/session', { headers: bearer }],
    ['/api/v1/relay/active', { headers: bearer }],
    ['/api/v1/relay/start', { method: 'POST', headers: bearer }],
    ['/api/v1/relay/stop', { method: 'POST', headers: bearer }],
    ['/api/v1/auth/plugin/login/start', { method: 'POST' }],
    ['/api/v1/auth/refresh', { method: 'POST' }],
  ] as const)
    expect((await ask(path, request)).headers.get('cache-control')).toBe('no-store')
})

describe('text that Postgres cannot store', () => {
  const bearer = () => ({ Authorization: `Bearer ${user.bearer}` })
  const relay = { 'X-Relay-Auth': relaySecret }
  const known = randomUUID()
  const places = (text: string): [string, object, Record<string, string>][] => [
    ['/auth/signup', { email: `${text}@example.com`, password: 'a password of ours' }, {}],
    ['/auth/signup', { email: 'someone@example.com', password: `a password ${text}` }, {}],
    ['/auth/login', { email: text, password: 'x' }, {}],
    ['/auth/login', { email: 'someone@example.com', password: text }, {}],
    ['/auth/refresh', { refresh_token: text }, {}],
    ['/auth/plugin/login/poll', { login_attempt_id: text, poll_token: 'x' }, {}],
    ['/auth/plugin/login/poll', { login_attempt_id: known, poll_token: text }, {}],
    ['/relay/start', { connection_id: text }, { ...bearer(), 'Idempotency-Key': randomUUID() }],
    ['/relay/start', { region: text }, { ...bearer(), 'Idempotency-Key': randomUUID() }],
    ['/relay/stop', { session_id: text }, bearer()],
    ['/relay/stop', { connection_id: text }, bearer()],
    ['/relay/health', { session_id: text, instance_id: 'i' }, relay],
    ['/relay/health', { session_id: known, instance_id: text }, relay],
    ['/relay/health', { session_id: known, instance_id: 'i', observed_at: text }, relay],
    [`/admin/sessions/${known}/disconnect`, { reason: text }, operator],
    [`/admin/sessions/${known}/transition`, { to: text }, operator],
    [`/admin/users/${known}/grant`, { plan_tier: text }, operator],
    [`/admin/users/${user.userId}/grant`, { plan_tier: 'paid', until: text }, operator],
  ]

  test.each(['\0', '\ud800', 'a\udc00b'])('such as %j is refused in every field', async (text) => {
    for (const [path, body, headers] of places(text)) {
      const { status } = await api.post(path, body, { headers })
      expect([path, body, status >= 400 && status < 500]).toEqual([path, body, true])
    }
  })

  test.each(['%00', '%ED%A0%80', '%FF'])('such as %s is harmless in every query', async (text) => {
    for (const path of ['/admin/users?email=', '/admin/sessions?region=', '/admin/sessions?user_id='])
      expect((await ask(`/api/v1${path}${text}`, { headers: operator })).status).toBeLessThan(500)
    for (const path of ['/relay/active?connection_id=', '/relay/active?view=', '/auth/session?view='])
      expect((await ask(`/api/v1${path}${text}`, { headers: bearer() })).status).toBe(400)
  })
})

/** Bodies with field names of the routes and arbitrary values. */
const anyBody = () => {
  const names = routes.flatMap(({ body }) => Object.keys((body as { shape?: object } | undefined)?.shape ?? {}))
  const value = fc.oneof(
    fc.jsonValue({ maxDepth: 3 }),
    fc.string({ unit: 'binary' }),
    fc.uuid(),
    fc.constantFrom(user.userId, 'paid', 'active', '2030-01-01T00:00:00Z', '0000-01-01T00:00:00Z', -1, 2 ** 53, 1e300),
  )
  return fc.dictionary(fc.constantFrom(...names, 'constructor', 'toString'), value, { maxKeys: 6 })
}

describe('arbitrary JSON', () => {
  const sender = () => ({ Authorization: `Bearer ${user.bearer}` })
  const credentials = {
    none: () => ({}),
    user: () => ({ ...sender(), 'Idempotency-Key': randomUUID() }),
    maybe_user: sender,
    app: sender,
    user_or_app: () => ({ ...sender(), 'Idempotency-Key': randomUUID() }),
    operator: () => operator,
    relay: () => ({ 'X-Relay-Auth': relaySecret }),
    relay_watcher: sender,
  }

  test.each(
    routes.filter((route) => route.method === 'POST' && route.body).map((route) => [route.path, route] as const),
  )('sent to %s causes no undocumented 5xx', async (path, route) => {
    const target = path.replaceAll(/\{\w+\}/g, user.userId)
    await fc.assert(
      fc.asyncProperty(fc.oneof(anyBody(), fc.jsonValue()), async (body) => {
        const answer = await api.post(target, JSON.stringify(body), { headers: credentials[route.caller]() })
        expect(answer.status < 500 || answer.status === 501).toBe(true)
        if (answer.status >= 400) expect(Object.keys(answer.body)).toEqual(['error'])
      }),
      { numRuns: propertyRuns(10, 60) },
    )
  })
})
