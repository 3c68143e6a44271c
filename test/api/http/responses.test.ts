/** The headers and bodies of responses that are sent in one step. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startApi } from '../../support/api.ts'

const api = await startApi()
const user = await api.given.user()
const bearer = { Authorization: `Bearer ${user.bearer}` }
const ask = (path: string, request: RequestInit = {}) => fetch(`${api.url}${path}`, request)
const login = (body: string, headers: Record<string, string> = {}) =>
  ask('/api/v1/auth/login', { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers } })

/** The headers that every response has, with their values. */
const securityHeadersOf = (headers: Headers) =>
  Object.fromEntries(
    [...headers].filter(([name]) => /^(x-(?!request-id)|cross-origin-|content-sec|strict|referrer|origin-)/.test(name)),
  )

describe('the security headers', () => {
  test.each([
    ['a reply of a route', '/api/v1/capacity/status', {}, 200],
    ['a reply without a body', '/api/v1/auth/logout', { method: 'POST' }, 204],
    ['a refusal of a route', '/api/v1/auth/session', { headers: {} }, 401],
    ['a refusal of a path', '/api/v1/nowhere', {}, 404],
    ['a refusal of a method', '/api/v1/relay/start', {}, 405],
    ['a refusal of a route with a parameter', `/api/v1/relay/sessions/${randomUUID()}`, {}, 404],
  ])('of %s are those of the other responses, each once', async (_, path, request, status) => {
    const { bearer: ownBearer } = await api.given.user()
    const answer = await ask(path, { headers: { Authorization: `Bearer ${ownBearer}` }, ...request })
    expect(answer.status).toBe(status)
    const expected = securityHeadersOf((await ask('/livez')).headers)
    expect(Object.keys(expected).length).toBeGreaterThan(10)
    expect(securityHeadersOf(answer.headers)).toEqual(expected)
  })
})

test('a page keeps its own content security policy', async () => {
  const policy = (await ask('/docs')).headers.get('content-security-policy')
  expect(policy).toContain('script-src')
  expect(policy).not.toContain(',')
})

test('HEAD is answered like GET, without a body', async () => {
  const [get, head] = [
    await ask('/api/v1/auth/session', { headers: bearer }),
    await ask('/api/v1/auth/session', { method: 'HEAD', headers: bearer }),
  ]
  const shown = ({ status, headers }: Response) => [status, headers.get('content-type'), headers.get('content-length')]
  expect(get.status).toBe(200)
  expect(shown(head)).toEqual(shown(get))
  expect(await head.text()).toBe('')
  expect((await get.text()).length).toBe(Number(get.headers.get('content-length')))
})

test('a length is counted in bytes', async () => {
  const start = await ask('/api/v1/auth/plugin/login/start', {
    method: 'POST',
    body: JSON.stringify({ client_name: 'crème 🐎' }),
    headers: { 'Content-Type': 'application/json' },
  })
  const { login_attempt_id: id } = (await start.json()) as { login_attempt_id: string }
  const answer = await ask(`/api/v1/auth/plugin/login/attempts/${id}`, { headers: bearer })
  const text = await answer.text()
  expect([answer.status, text]).toEqual([200, expect.stringContaining('crème 🐎')])
  expect(answer.headers.get('content-length')).toBe(String(Buffer.byteLength(text)))
})

test('a reply without a body has no length and no content type', async () => {
  const { headers, status } = await ask('/api/v1/auth/logout', {
    method: 'POST',
    headers: { Authorization: `Bearer ${(await api.given.user()).bearer}` },
  })
  expect([status, headers.get('content-type'), headers.get('content-length')]).toEqual([204, null, null])
})

test('a request that is refused after it was counted has the headers of its rate limit and forbids storing', async () => {
  const answer = await login('{}')
  expect(answer.status).toBe(400)
  expect(answer.headers.get('ratelimit-policy')).toMatch(/^"login";/)
  expect(answer.headers.get('ratelimit')).toMatch(/^"login";r=\d+;t=\d+$/)
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('a body that is declared as not encoded is read', async () => {
  const answer = await login('{"email":"a@b.example","password":"x"}', { 'Content-Encoding': 'identity' })
  expect(answer.status).toBe(401)
})

test('a media type that only ends in json is refused', async () => {
  expect((await login('{}', { 'Content-Type': 'application/problem+json' })).status).toBe(415)
})
