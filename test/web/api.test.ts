/** The API client of the site: timeouts, and what visitors can put into paths and headers. */
import { beforeEach, expect, test } from 'vitest'
import { ApiUnavailableError, createApi } from '../../web/api.ts'
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
  await expect(
    createApi(slow.url, { millis: 100, slowMillis: 5000 }).call('GET', '/api/v1/capacity/status', { visitor }),
  ).rejects.toThrow(ApiUnavailableError)
})

test.each([502, 504])(
  'a proxy that answers %i because it does not reach the API rejects as unavailable',
  async (status) => {
    double.respondWith(() => ({ status, headers: { 'Content-Type': 'text/html' }, body: {} }))
    const call = createApi(double.url).call('GET', '/api/v1/capacity/status', { visitor })
    await expect(call).rejects.toThrow(ApiUnavailableError)
  },
)

test('an error of the API itself with the status 502 is its reply', async () => {
  const body = { error: { code: 'billing_provider_error', message: 'Later.' } }
  double.respondWith(() => ({ status: 502, body }))
  expect(await createApi(double.url).call('POST', '/api/v1/billing/portal', { visitor })).toMatchObject({
    status: 502,
    body,
  })
})

test.each([
  '/api/v1/things/../admin',
  '/api/v1/things/%2e%2e',
  '/api/v1/things/',
  '/api/v1/things/a b',
  '/api/v1/things/a#b',
])('a path that is not plain gets 404 without a request: %s', async (path) => {
  const answer = await createApi(double.url).call('GET', path, { visitor, bearer: 'a.b.c' })
  expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
  expect(double.requests).toEqual([])
})

test('line breaks are removed from header values', async () => {
  const headers = { 'idempotency-key': 'one\r\nx-injected: two' }
  await createApi(double.url).call('POST', '/api/v1/relay/start', { visitor, headers, body: {} })
  expect(double.requests[0]?.headers).toMatchObject({ 'idempotency-key': 'onex-injected: two' })
  expect(double.requests[0]?.headers['x-injected']).toBeUndefined()
})
