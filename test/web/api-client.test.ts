/** The typed client of the pages: what becomes of parameters and replies. */
import { expect, test } from 'vitest'
import { type ApiResponse, ApiUnavailableError } from '../../web/api.ts'
import { createPageClient, readApiError, requireData } from '../../web/api-client.ts'

const clientOf = (reply: Partial<ApiResponse>) => {
  const sent: { method: string; path: string; headers: object; body: string }[] = []
  const client = createPageClient(async (method, path, { headers = {}, body }) => {
    sent.push({ method, path, headers, body: Buffer.from((body ?? []) as Uint8Array).toString() })
    return { status: 200, headers: new Headers(), body: {}, bytes: new Uint8Array(), ...reply }
  })
  return { client, sent }
}

test('parameters, headers and body are sent, without query parameters that have no value', async () => {
  const { client, sent } = clientOf({ body: { sessions: [] } })
  const query = { connection_id: 'a b&c', cursor: '', limit: 0 }
  expect((await client.GET('/api/v1/relay/sessions', { params: { query } })).data).toEqual({ sessions: [] })
  const header = { 'Idempotency-Key': 'one' }
  await client.POST('/api/v1/relay/start', { params: { header }, body: { connection_id: 'cam' } })
  await client.POST('/api/v1/auth/logout')
  expect(sent).toEqual([
    { method: 'GET', path: '/api/v1/relay/sessions?connection_id=a+b%26c&limit=0', headers: {}, body: '' },
    {
      method: 'POST',
      path: '/api/v1/relay/start',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'one' },
      body: '{"connection_id":"cam"}',
    },
    { method: 'POST', path: '/api/v1/auth/logout', headers: {}, body: '' },
  ])
})

test('a refusal has its status, headers, code and message', async () => {
  const body = { error: { code: 'rate_limited', message: 'Too many requests.' } }
  const { client } = clientOf({ status: 429, headers: new Headers({ 'retry-after': '7' }), body })
  const result = await client.GET('/api/v1/usage/days')
  expect([result.response.status, result.response.headers.get('retry-after')]).toEqual([429, '7'])
  expect([result.data, readApiError(result)]).toEqual([undefined, body.error])
  expect(() => requireData(result, 'a page')).toThrow(new ApiUnavailableError('the API replied 429 to a page'))
})

test.each([204, 302, 304])('a reply with status %i resolves', async (status) => {
  const { client } = clientOf({ status })
  const { data, response } = await client.POST('/api/v1/auth/logout')
  expect([data, response.status]).toEqual([undefined, status])
})

test('an error of the sender rejects the request unchanged', async () => {
  const error = new ApiUnavailableError('the API did not reply')
  const client = createPageClient(() => Promise.reject(error))
  await expect(client.GET('/api/v1/usage/days')).rejects.toBe(error)
})
