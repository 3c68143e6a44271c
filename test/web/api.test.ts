/** The API client of the site: timeouts, what visitors can put into paths and headers, and what becomes of replies. */
import { beforeEach, expect, test } from 'vitest'
import { ApiError, ApiUnreachableError, expectSuccess, isApiFailure } from '../../client/api-error.ts'
import { createApi } from '../../web/api.ts'
import { readApiError } from '../../web/api-client.ts'
import { startApiDouble } from '../support/api-double.ts'

const double = await startApiDouble()
const visitor = { ip: '192.0.2.1', userAgent: 'a browser' }

beforeEach(() => {
  double.requests.length = 0
  double.respondWith(() => ({ body: {} }))
})

test('a call that times out rejects as unavailable', async () => {
  // A separate double, since the abandoned request could arrive during the next test.
  const slow = await startApiDouble()
  slow.respondWith(() => new Promise(() => {}))
  const api = createApi(slow.url, { millis: 100, slowMillis: 60_000 })
  await expect(api.client({ visitor }).GET('/api/v1/capacity/status')).rejects.toThrow(ApiUnreachableError)
  await expect(api.forward('GET', '/api/v1/capacity/status', { visitor })).rejects.toThrow(ApiUnreachableError)
})

test('a call during which the API may wait for others has more time', async () => {
  double.respondWith(() => new Promise((resolve) => setTimeout(resolve, 100, { body: {} })))
  const client = createApi(double.url, { millis: 50, slowMillis: 60_000 }).client({ visitor })
  expect((await client.POST('/api/v1/billing/portal')).response.status).toBe(200)
})

test.each([502, 504])(
  'a proxy that answers %i because it does not reach the API rejects as unavailable',
  async (status) => {
    double.respondWith(() => ({ status, headers: { 'Content-Type': 'text/html' }, body: '<p>Bad gateway</p>' }))
    const call = createApi(double.url).client({ visitor }).GET('/api/v1/capacity/status')
    await expect(call).rejects.toThrow(ApiUnreachableError)
  },
)

test('an error of the API itself with the status 502 is its reply', async () => {
  const body = { error: { code: 'billing_provider_error', message: 'Later.' } }
  double.respondWith(() => ({ status: 502, body }))
  const { error, response } = await createApi(double.url).client({ visitor }).POST('/api/v1/billing/portal')
  expect([response.status, error]).toEqual([502, body])
})

test.each([
  '/api/v1/things/../admin',
  '/api/v1/things/%2e%2e',
  '/api/v1/things/',
  '/api/v1/things/a b',
  '/api/v1/things/a#b',
])('a path that is not plain gets 404 without a request: %s', async (path) => {
  const answer = await createApi(double.url).forward('GET', path, { visitor, bearer: 'a.b.c' })
  expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'not_found' } }])
  expect(double.requests).toEqual([])
})

test.each(['', '.', '..', '%2e%2e', 'a/b', 'a b', 'a)', 'é'])(
  'the path parameter "%s" gets 404 without a request',
  async (id) => {
    const params = { path: { id } }
    const answer = await createApi(double.url).client({ visitor }).GET('/api/v1/relay/sessions/{id}', { params })
    expect([answer.response.status, readApiError(answer).code]).toEqual([404, 'not_found'])
    expect(double.requests).toEqual([])
  },
)

test('line breaks are removed from header values', async () => {
  const headers = { 'idempotency-key': 'one\r\nx-injected: two' }
  const api = createApi(double.url)
  await api.forward('POST', '/api/v1/relay/start', { visitor, headers })
  await api.client({ visitor, headers }).POST('/api/v1/auth/logout')
  for (const request of double.requests) {
    expect(request.headers).toMatchObject({ 'idempotency-key': 'onex-injected: two' })
    expect(request.headers['x-injected']).toBeUndefined()
  }
  expect(double.requests).toHaveLength(2)
})

test('parameters, headers and body are sent, without query parameters that have no value', async () => {
  const client = createApi(double.url).client({ visitor, bearer: 'a.b.c' })
  const query = { connection_id: 'a b&c', cursor: '', limit: 0 }
  await client.GET('/api/v1/relay/sessions', { params: { query } })
  const header = { 'Idempotency-Key': 'one' }
  await client.POST('/api/v1/relay/start', { params: { header }, body: { connection_id: 'cam' } })
  await client.POST('/api/v1/auth/logout')
  expect(double.requests).toMatchObject([
    { method: 'GET', url: '/api/v1/relay/sessions?connection_id=a+b%26c&limit=0', body: '' },
    {
      method: 'POST',
      url: '/api/v1/relay/start',
      headers: { 'content-type': 'application/json', 'content-length': '23', 'idempotency-key': 'one' },
      body: '{"connection_id":"cam"}',
    },
    { method: 'POST', url: '/api/v1/auth/logout', body: '' },
  ])
  const who = { 'user-agent': 'a browser', 'x-forwarded-for': '192.0.2.1', authorization: 'Bearer a.b.c' }
  for (const { headers } of double.requests) expect(headers).toMatchObject(who)
})

test('a refusal has its status, headers, code and message, and is not repeated', async () => {
  const body = { error: { code: 'rate_limited', message: 'Too many requests.' } }
  double.respondWith(() => ({ status: 429, headers: { 'retry-after': '7' }, body }))
  const result = await createApi(double.url).client({ visitor }).GET('/api/v1/usage/days')
  expect([result.response.status, result.response.headers.get('retry-after')]).toEqual([429, '7'])
  expect([result.data, readApiError(result)]).toEqual([undefined, body.error])
  expect(() => expectSuccess(result, 'A page')).toThrow(
    new ApiError({
      status: 429,
      code: 'rate_limited',
      reason: 'Too many requests.',
      retryAfterSeconds: 7,
      action: 'A page',
    }),
  )
  expect(double.requests).toHaveLength(1)
})

test.each([
  [302, '{}', 'application/json'],
  [200, '<p>Welcome</p>', 'text/html'],
  [200, '{"usage":', 'application/json'],
])('a reply that is none of the API is a failure of it: %i %s', async (status, body, type) => {
  double.respondWith(() => ({ status, headers: { 'content-type': type, location: '/' }, body }))
  const error = await createApi(double.url)
    .client({ visitor })
    .GET('/api/v1/usage/days')
    .catch((reason) => reason)
  expect(isApiFailure(error)).toBe(true)
})

test('a reply without a body is a success', async () => {
  double.respondWith(() => ({ status: 204 }))
  const { response } = await createApi(double.url).client({ visitor }).POST('/api/v1/auth/logout')
  expect(response.status).toBe(204)
})

test('an error names the path and not the query, which may contain a secret', async () => {
  const gone = await startApiDouble()
  await gone.close()
  const query = { connection_id: 'secret' }
  const call = createApi(gone.url).client({ visitor }).GET('/api/v1/relay/sessions', { params: { query } })
  await expect(call).rejects.toThrow(
    /^http:\/\/127\.0\.0\.1:\d+\/api\/v1\/relay\/sessions could not be reached: (?!.*secret)/,
  )
})
