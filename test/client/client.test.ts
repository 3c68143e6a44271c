/** The typed client of the API: limits of time, repetition, errors. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ApiError, ApiUnreachableError, expectSuccess, PathParameterError } from '../../client/api-error.ts'
import { bearer, createApiClient, operatorCredentials, repeatFor } from '../../client/client.ts'
import { startApi, type TestApi } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { findFreePort } from '../support/ports.ts'
import { operatorPassword } from '../support/relays.ts'

/** A server that answers as `listener` does. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  atEnd(() => server.closeAllConnections())
  atEnd(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('against the API', () => {
  let api: TestApi
  beforeAll(async () => {
    api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
  })

  test('an operator reads an account by its id', async () => {
    const { userId: id, email } = await api.given.user()
    const operator = createApiClient({ baseUrl: `${api.url}/`, headers: operatorCredentials(operatorPassword) })
    const found = await operator.GET('/api/v1/admin/users/{id}', { params: { path: { id } } })
    expect(expectSuccess(found).user.email).toBe(email)
  })

  test('a user reads the own account', async () => {
    const user = await api.given.user()
    const client = createApiClient({ baseUrl: api.url, headers: bearer(user.bearer) })
    expect(expectSuccess(await client.GET('/api/v1/auth/session')).user.id).toBe(user.userId)
  })

  test('a refusal becomes an error with its status, code and sentence', async () => {
    const visitor = createApiClient({ baseUrl: api.url })
    const refused = await visitor.GET('/api/v1/auth/session')
    expect(() => expectSuccess(refused, 'The session')).toThrow(
      expect.objectContaining({
        status: 401,
        code: 'unauthorized',
        message: expect.stringMatching(/^The session failed: 401 /),
      }),
    )
  })

  test('a reply without a body is a success', async () => {
    const user = await api.given.user()
    const client = createApiClient({ baseUrl: api.url, headers: bearer(user.bearer) })
    expect(expectSuccess(await client.POST('/api/v1/auth/logout'))).toBeUndefined()
  })
})

test.each([
  ['../users', '/api/v1/admin/users/..%2Fusers'],
  ['a/b?c#d', '/api/v1/admin/users/a%2Fb%3Fc%23d'],
  ['%2e%2e', '/api/v1/admin/users/%252e%252e'],
  ['é ;=', '/api/v1/admin/users/%C3%A9%20%3B%3D'],
])('the path parameter %s stays one segment of the path', async (id, path) => {
  const paths: (string | undefined)[] = []
  const baseUrl = await serve((request, response) => {
    paths.push(request.url)
    response.setHeader('content-type', 'application/json').end('{}')
  })
  await createApiClient({ baseUrl }).GET('/api/v1/admin/users/{id}', { params: { path: { id } } })
  expect(paths).toEqual([path])
})

test.each(['', '.', '..'])('the path parameter "%s" is refused without a request', async (id) => {
  const baseUrl = `http://127.0.0.1:${await findFreePort()}`
  const requested = createApiClient({ baseUrl }).GET('/api/v1/admin/users/{id}', { params: { path: { id } } })
  await expect(requested).rejects.toThrow(PathParameterError)
})

test('a redirect is an error that names the other address', async () => {
  const baseUrl = await serve((_, response) =>
    response.writeHead(308, { location: 'https://api.example.com/livez' }).end(),
  )
  await expect(createApiClient({ baseUrl }).GET('/api/v1/relay/manifest')).rejects.toThrow(
    /redirects to https:\/\/api\.example\.com/,
  )
})

test('a reply that is no JSON is an error', async () => {
  const baseUrl = await serve((_, response) => response.setHeader('content-type', 'text/html').end('<p>Welcome</p>'))
  await expect(createApiClient({ baseUrl }).GET('/api/v1/relay/manifest')).rejects.toThrow(ApiError)
})

test('an error page of a proxy becomes an error with its status and without a code', async () => {
  const baseUrl = await serve((_, response) => response.writeHead(502).end('<p>Bad gateway</p>'))
  const refused = await createApiClient({ baseUrl }).GET('/api/v1/relay/manifest')
  expect(() => expectSuccess(refused)).toThrow(expect.objectContaining({ status: 502, code: '' }))
})

test('a reply that does not end in time is an error that names the address', async () => {
  const baseUrl = await serve((_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).write('{'),
  )
  const requested = createApiClient({ baseUrl, timeoutMillis: 200 }).GET('/api/v1/relay/manifest')
  await expect(requested).rejects.toThrow(ApiUnreachableError)
  await expect(requested).rejects.toThrow(`${baseUrl}/api/v1/relay/manifest could not be reached: `)
})

test('an unreachable API is reported without the token of a share link', async () => {
  const client = createApiClient({ baseUrl: `http://127.0.0.1:${await findFreePort()}` })
  const requested = client.GET('/api/v1/shared/{token}', { params: { path: { token: 'hidden-token' } } })
  await expect(requested).rejects.toThrow(/\/api\/v1\/shared\/… could not be reached: (?!.*hidden-token)/)
})

test('the limit of time holds while garbage is collected', { timeout: 30_000 }, async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const collecting = setInterval(collect, 5)
  onTestFinished(() => clearInterval(collecting))
  const client = createApiClient({ baseUrl: await serve(() => {}), timeoutMillis: 200 })
  const requests = Array.from({ length: 10 }, () => client.GET('/api/v1/relay/manifest'))
  const results = await Promise.allSettled(requests)
  expect(results.map(({ status }) => status)).toEqual(Array(10).fill('rejected'))
})

test('a request without repetition is sent once, and its error has the time to wait', async () => {
  let requests = 0
  const baseUrl = await serve((_, response) => {
    requests += 1
    response.writeHead(429, { 'retry-after': '7', 'content-type': 'application/json' })
    response.end('{"error":{"code":"rate_limited","message":"Wait."}}')
  })
  const refused = await createApiClient({ baseUrl }).GET('/api/v1/relay/manifest')
  expect(() => expectSuccess(refused)).toThrow(
    expect.objectContaining({ status: 429, code: 'rate_limited', retryAfterSeconds: 7 }),
  )
  expect(requests).toBe(1)
})

test.each(['of the client', 'of the request'])(
  'with a repetition %s, a body is sent again until it is accepted',
  async (of) => {
    const bodies: string[] = []
    const baseUrl = await serve(async (request, response) => {
      bodies.push(Buffer.concat(await request.toArray()).toString())
      response.setHeader('content-type', 'application/json')
      if (bodies.length === 1) return request.socket.destroy()
      if (bodies.length === 2) return response.writeHead(503, { 'retry-after': '0' }).end('{}')
      return response.end('{"cp_access_jwt":"token"}')
    })
    const body = { email: 'a@example.com', password: 'a few words in a row' }
    const client = createApiClient({ baseUrl, ...(of === 'of the client' ? { retryMillisMax: 20_000 } : {}) })
    const signedIn = await client.POST('/api/v1/auth/login', {
      body,
      ...(of === 'of the request' ? repeatFor(20_000) : {}),
    })
    expect(expectSuccess(signedIn)).toEqual({ cp_access_jwt: 'token' })
    expect(bodies.map((text) => JSON.parse(text))).toEqual([body, body, body])
  },
)

test('an aborted request is not repeated', async () => {
  let requests = 0
  const controller = new AbortController()
  const baseUrl = await serve((request) => {
    requests += 1
    request.socket.destroy()
    controller.abort()
  })
  const client = createApiClient({ baseUrl, retryMillisMax: 20_000 })
  await expect(client.GET('/api/v1/relay/manifest', { signal: controller.signal })).rejects.toThrow()
  expect(requests).toBe(1)
})
