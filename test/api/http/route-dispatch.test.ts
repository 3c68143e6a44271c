/** The routes that paths and methods lead to, compared with the router's own answer. */
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { describe, expect, test } from 'vitest'
import { routeTemplate } from '../../../api/http/http-metrics.ts'
import { noContent } from '../../../api/http/replies.ts'
import { createRouteDispatch } from '../../../api/http/route-dispatch.ts'
import type { ServedRoute } from '../../../api/http/served-route.ts'
import { atEnd } from '../../support/at-end.ts'

const declare = (method: ServedRoute['method'], path: string): ServedRoute => ({
  method,
  path,
  hasAmbientCredentials: false,
  handle: noContent,
  admit: () => Promise.reject(new Error('not called')),
})

const { serveExactPaths, router } = createRouteDispatch(
  [
    declare('GET', '/things'),
    declare('GET', '/things/{id}'),
    declare('DELETE', '/things/{id}'),
    declare('POST', '/things/all'),
    declare('GET', '/things/all/{name}'),
  ],
  '/base',
  ({ method, path }) =>
    async (ctx) => {
      ctx.body = { route: `${method} ${path}`, label: routeTemplate(ctx), params: ctx.params ?? {} }
    },
)
const app = new Koa()
app.use(serveExactPaths).use(router.routes())
const server = createServer(app.callback()).listen(0, '127.0.0.1')
atEnd(() => server.close())
await once(server, 'listening')

/** Sends the path as it is; `fetch` would normalise it. */
async function ask(
  method: string,
  path: string,
): Promise<{ status: number | undefined; text: string; length: string }> {
  const { port } = server.address() as AddressInfo
  const sent = request({ host: '127.0.0.1', port, method, path, agent: false }).end()
  const [answer] = await once(sent, 'response')
  let text = ''
  for await (const part of answer) text += part
  return { status: answer.statusCode, text, length: answer.headers['content-length'] }
}

describe('a request', () => {
  test.each([
    ['GET', '/base/things', { route: 'GET /things', label: '/base/things', params: {} }],
    ['GET', '/base/things?id=1&x=%2F', { route: 'GET /things', label: '/base/things', params: {} }],
    ['GET', '/base/things/7', { route: 'GET /things/{id}', label: '/base/things/:id', params: { id: '7' } }],
    [
      'DELETE',
      '/base/things/a%2Fb',
      { route: 'DELETE /things/{id}', label: '/base/things/:id', params: { id: 'a/b' } },
    ],
    ['POST', '/base/things/all', { route: 'POST /things/all', label: '/base/things/all', params: {} }],
    ['GET', '/base/things/al%6C', { route: 'GET /things/{id}', label: '/base/things/:id', params: { id: 'all' } }],
    ['GET', 'http://other.test/base/things', { route: 'GET /things', label: '/base/things', params: {} }],
  ])('%s %s reaches its route', async (method, path, expected) => {
    const { status, text } = await ask(method, path)
    expect([status, JSON.parse(text)]).toEqual([200, expected])
  })

  test.each([
    ['POST', '/base/things'],
    ['OPTIONS', '/base/things'],
    // The path without a parameter hides the one with a parameter, whatever the method.
    ['GET', '/base/things/all'],
    ['DELETE', '/base/things/all'],
    ['GET', '/base/things/'],
    ['GET', '/base/Things'],
    ['GET', '/base//things'],
    ['GET', '/base%2Fthings'],
    ['GET', '/base/th%69ngs'],
    ['GET', '/base/things/{id}'],
    ['GET', '/base/things;a=1'],
    ['GET', '/things'],
    ['GET', '/base/__proto__'],
  ])('%s %s reaches no route', async (method, path) => expect((await ask(method, path)).status).toBe(404))

  test.each(['/base/things', '/base/things/7'])('HEAD %s is answered like GET, without a body', async (path) => {
    const [get, head] = [await ask('GET', path), await ask('HEAD', path)]
    expect(head).toEqual({ ...get, text: '' })
  })
})
