/** Routes that are going to be left out: what their replies and the API reference say. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RouterContext } from '@koa/router'
import Koa from 'koa'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { deprecationHeaders } from '../../../api/http/deprecation.ts'
import { Refusal } from '../../../api/http/refusals.ts'
import { noContent } from '../../../api/http/replies.ts'
import { beginHeaders, send } from '../../../api/http/responses.ts'
import { createRouteHandler } from '../../../api/http/route-handler.ts'
import type { ServedRoute } from '../../../api/http/served-route.ts'
import { openapiDocument } from '../../../api/openapi/document.ts'
import { route } from '../../../api/routes/route.ts'
import { get, none, uncounted } from '../../../api/routes/surface.ts'
import { atEnd } from '../../support/at-end.ts'

const deprecated = { since: '2027-01-31', sunset: '2028-01-31' }
const headers = { deprecation: '@1801353600', sunset: 'Mon, 31 Jan 2028 00:00:00 GMT' }

const served: Omit<ServedRoute, 'handle'> = {
  method: 'GET',
  path: '/things',
  hasAmbientCredentials: false,
  admit: async () => ({ caller: undefined, read: undefined, headers: undefined }),
}

/** The headers of a reply of this route that are about its deprecation. */
async function deprecationOf(declared: ServedRoute): Promise<object> {
  const handle = createRouteHandler(declared, () => {})
  const app = new Koa()
  app.use(async (ctx) => {
    beginHeaders(ctx, {})
    await handle(ctx as RouterContext).catch((error: Refusal) => send(ctx, error.status, error.body))
  })
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  atEnd(() => server.close())
  await once(server, 'listening')
  const { headers: sent } = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/things`)
  const names = ['deprecation', 'sunset']
  return Object.fromEntries([...sent].filter(([name]) => names.includes(name)))
}

const refuse = () => {
  throw new Refusal('not_found')
}

test('a deprecated route says so in its successes and in its refusals', async () => {
  expect(await deprecationOf({ ...served, deprecated, handle: noContent })).toEqual(headers)
  expect(await deprecationOf({ ...served, deprecated, handle: refuse })).toEqual(headers)
})

test('another route says nothing about deprecation', async () => {
  expect(await deprecationOf({ ...served, handle: noContent })).toEqual({})
})

test.each([
  [{ since: '2027-01-31', sunset: '2028-01-30' }, 'less than a year after'],
  [{ since: '2027-01-31', sunset: '2028-02-30' }, '2028-02-30 is not a date'],
  [{ since: 'soon', sunset: '2028-02-28' }, 'soon is not a date'],
])('a sunset that is no date or too early is refused when the service starts: %o', (dates, message) => {
  expect(() => deprecationHeaders(dates)).toThrow(message)
})

test('the document marks the operation as deprecated, with both dates and headers', () => {
  const parts = { id: 'getThing', summary: 'Show a thing', description: 'A thing.', refuses: [], handle: noContent }
  const declare = (more: object) => route.none({ ...parts, ...more, answers: { 200: z.object({}) } })
  const document = openapiDocument(
    [get('/auth/old', none, uncounted, declare({ deprecated })), get('/auth/new', none, uncounted, declare({}))],
    'http://localhost:8080',
  )
  const [old, current] = ['old', 'new'].map((name) => document.paths[`/api/v1/auth/${name}`]?.get)
  expect(old).toMatchObject({
    deprecated: true,
    description: 'A thing.\n\n**Deprecated** since 2027-01-31. It may be left out from 2028-01-31 on.',
    responses: { 200: { headers: { Deprecation: {}, Sunset: {} } } },
  })
  expect(current).not.toHaveProperty('deprecated')
  expect(current).not.toHaveProperty('responses.200.headers.Sunset')
})
