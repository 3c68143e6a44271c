/** Requests that another site's page makes an operator's browser send, with the saved password. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { routes } from '../../../api/routes.ts'
import { startApi, statusAndCode } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'

const operatorPassword = 'an operator of these tests'
const basic = (password: string) => ({
  Authorization: `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`,
})
const operator = basic(operatorPassword)
const [apiOrigin, siteOrigin] = ['https://api.relay.example', 'https://relay.example']
const api = await startApi({
  SVC_OPERATOR_PASSWORD: operatorPassword,
  SVC_API_URL: apiOrigin,
  SVC_SITE_URL: siteOrigin,
})

const send = (path: string, headers: Readonly<Record<string, string>>, body?: string) =>
  api.post(path, body, { headers: { ...operator, ...headers } })
const isDisabled = async (userId: string) =>
  (await api.sql`select from users where id = ${userId} and disabled_at is not null`).length === 1
const writes = routes.filter((route) => route.caller === 'operator' && route.method !== 'GET')

const foreign: [string, Record<string, string>][] = [
  ['another site', { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }],
  ['another site, in an old browser', { Origin: 'https://evil.example' }],
  ['another site that names no origin', { 'Sec-Fetch-Site': 'cross-site' }],
  ['another site that names the api’s origin', { 'Sec-Fetch-Site': 'cross-site', Origin: apiOrigin }],
  ['a sibling host', { 'Sec-Fetch-Site': 'same-site', Origin: 'https://blog.relay.example' }],
  ['the api’s host without TLS', { Origin: 'http://api.relay.example' }],
  ['a sandboxed frame', { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' }],
  ['the address bar', { 'Sec-Fetch-Site': 'none' }],
]

describe.each(foreign)('a request from %s', (_, headers) => {
  test('disables no account, with and without a JSON content type', async () => {
    const { userId } = await api.given.user()
    const path = `/admin/users/${userId}/disable`
    expect(statusAndCode(await send(path, headers))).toEqual([403, 'forbidden'])
    expect(statusAndCode(await send(path, headers, '{"disabled":true}'))).toEqual([403, 'forbidden'])
    expect(await isDisabled(userId)).toBe(false)
  })

  test.each(writes.map((route) => route.path))('is refused by POST %s', async (path) => {
    const target = path.replaceAll(/\{\w+\}/g, randomUUID())
    expect(statusAndCode(await send(target, headers, '{}'))).toEqual([403, 'forbidden'])
  })
})

test.each([
  ['a page of the api', { 'Sec-Fetch-Site': 'same-origin', Origin: apiOrigin }],
  ['a page of the api, in an old browser', { Origin: apiOrigin }],
  ['a page of the site', { 'Sec-Fetch-Site': 'same-site', Origin: siteOrigin }],
  ['a page of the site, in an old browser', { Origin: siteOrigin }],
  ['no browser', {}],
])('a request from %s is accepted', async (_, headers) => {
  const { userId } = await api.given.user()
  expect((await send(`/admin/users/${userId}/disable`, headers, '{}')).status).toBe(200)
  expect(await isDisabled(userId)).toBe(true)
})

describe('a form of a browser that sends neither Origin nor Fetch Metadata', () => {
  const types = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain']

  test.each(types)('with type %s changes nothing, with and without fields', async (type) => {
    const { userId } = await api.given.user()
    for (const body of ['', '{"disabled":true}', '{"disabled":true,"ignored":"="}']) {
      const answer = await send(`/admin/users/${userId}/disable`, { 'Content-Type': type }, body)
      expect(statusAndCode(answer)).toEqual([415, 'unsupported_media_type'])
    }
    expect(await isDisabled(userId)).toBe(false)
  })

  test.each(writes.map((route) => route.path))('is refused by POST %s', async (path) => {
    const target = path.replaceAll(/\{\w+\}/g, randomUUID())
    for (const type of [...types, '', 'application/jsonp', 'text/json'])
      expect(statusAndCode(await send(target, type === '' ? {} : { 'Content-Type': type }))).toEqual([
        415,
        'unsupported_media_type',
      ])
  })
})

test('an empty body with a JSON content type counts as an object without fields', async () => {
  const { userId } = await api.given.user()
  const headers = { 'Content-Type': 'Application/JSON; charset=utf-8' }
  expect((await send(`/admin/users/${userId}/disable`, headers)).status).toBe(200)
  expect(await isDisabled(userId)).toBe(true)
})

test('requests from another site do not count as failed operator sign-ins', async () => {
  const limited = await startApi({
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_RATE_LIMITS: highLimits({ operator: 2 }),
  })
  const path = `/admin/users/${randomUUID()}/disable`
  for (let round = 0; round < 5; round += 1) {
    const answer = await limited.post(path, '{}', { headers: { ...basic('wrong'), Origin: 'https://evil.example' } })
    expect(statusAndCode(answer)).toEqual([403, 'forbidden'])
  }
  expect(statusAndCode(await limited.post(path, '{}', { headers: operator }))).toEqual([404, 'not_found'])
})
