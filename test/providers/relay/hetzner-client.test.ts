/** The requests to Hetzner's API: retries, limits, pauses. */
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import type { RelayProviderError } from '../../../providers/relay/provider.ts'
import {
  createHetznerRelays,
  failureOf,
  givenHetzner,
  givenHetznerRelays,
  never,
  relaySpec,
} from '../../support/hetzner.ts'

test.each([
  [412, 'resource_unavailable', 'try_other_zone', 'capacity'],
  [422, 'placement_error', 'try_other_zone', 'capacity'],
  [403, 'resource_limit_exceeded', 'give_up', 'quota'],
  [403, 'limit_reached', 'give_up', 'quota'],
  [401, 'unauthorized', 'give_up', 'configuration'],
  [403, 'forbidden', 'give_up', 'configuration'],
  [401, 'token_readonly', 'give_up', 'configuration'],
  [422, 'invalid_input', 'give_up', 'configuration'],
  [404, 'not_found', 'give_up', 'configuration'],
  [422, 'unsupported_error', 'give_up', 'configuration'],
  [410, 'deprecated_api_endpoint', 'give_up', 'configuration'],
  [423, 'locked', 'retry', undefined],
  [409, 'conflict', 'retry', undefined],
  [403, 'maintenance', 'retry', undefined],
  [422, 'service_error', 'retry', undefined],
  [500, 'server_error', 'retry', undefined],
  [503, 'unavailable', 'retry', undefined],
  [504, 'timeout', 'retry', undefined],
  [503, 'robot_unavailable', 'retry', undefined],
  [422, 'a_code_of_the_future', 'retry', undefined],
  [429, 'rate_limit_exceeded', 'throttled', undefined],
])('a create that is refused with %i %s creates nothing and fails with %s', async (status, code, failure, detail) => {
  const { api, relays } = await givenHetznerRelays()
  api.refuse(1, code, { status, method: 'POST' })
  const error = await failureOf(relays.create(relaySpec(), never()))
  expect(error).toMatchObject({ failure, detail })
  expect(error.message).toContain(code)
  expect(api.project.creations.size).toBe(0)
})

test.each(['error during placement', 'no capacity in this location', 'resource is currently unavailable'])(
  'a server_error with the text "%s" is a lack of capacity',
  async (message) => {
    const { api, relays } = await givenHetznerRelays()
    api.refuse(1, 'server_error', { status: 500, message })
    expect(await failureOf(relays.create(relaySpec(), never()))).toMatchObject({
      failure: 'try_other_zone',
      detail: 'capacity',
    })
  },
)

test('replies of 500 without JSON are retried, and a later call succeeds', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.fail(3)
  for (let attempt = 0; attempt < 3; attempt++)
    expect(await failureOf(relays.list())).toMatchObject({
      failure: 'retry',
      message: 'Hetzner answered GET /servers with 500',
    })
  expect(await relays.list()).toEqual([])
})

test('a request without a reply ends after the time limit', async () => {
  const { api, relays } = await givenHetznerRelays({ requestMillisMax: 100 })
  api.hang(1)
  const error = await failureOf(relays.create(relaySpec(), never()))
  expect(error).toMatchObject({ failure: 'retry', message: 'Hetzner did not answer POST /servers within 0.1 s' })
})

test('an API that cannot be reached is retried', async () => {
  const { api, relays } = await givenHetznerRelays()
  await api.close()
  expect(await failureOf(relays.list())).toMatchObject({
    failure: 'retry',
    message: 'Hetzner could not be reached for GET /servers: ECONNREFUSED',
  })
})

test('a reply that is not as documented is retried, and the error names the field', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.reply(1, { status: 200, body: { servers: [] } })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry', message: expect.stringContaining('meta') })
  api.reply(1, { status: 200, body: '<html>' })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry' })
})

test('a reply of 404 that is not from the API does not count as a deleted server', async () => {
  const { api, relays } = await givenHetznerRelays()
  const { instanceId, providerId } = await relays.create(relaySpec(), never())
  api.reply(1, { status: 404, body: 'not found' })
  expect(await failureOf(relays.destroy(instanceId, providerId))).toMatchObject({ failure: 'retry' })
  expect(api.project.servers()).toHaveLength(1)
})

test('a throttled call names the pause until the limit recovers', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.throttle(8000)
  const error = await failureOf(relays.list())
  expect(error.failure).toBe('throttled')
  expect(error.retryAfterSeconds).toBeGreaterThanOrEqual(7)
  expect(error.retryAfterSeconds).toBeLessThanOrEqual(9)
})

test.each([
  ['of 5 seconds', '5', 5],
  ['as a date', new Date(Date.now() + 3_600_000).toUTCString(), 60],
  ['of an hour', '3600', 60],
])('a pause in Retry-After %s is obeyed for 60 seconds at most', async (_, header, seconds) => {
  const { api, relays } = await givenHetznerRelays()
  api.throttle(3_600_000, { 'retry-after': header })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'throttled', retryAfterSeconds: seconds })
})

test('no request is sent during the pause of a throttled call, and calls succeed after it', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.throttle(500)
  await failureOf(relays.list())
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'throttled' })
  expect(await failureOf(relays.create(relaySpec(), never()))).toMatchObject({ failure: 'throttled' })
  expect(api.requests).toHaveLength(1)
  await expect.poll(() => relays.list().catch(() => undefined)).toEqual([])
})

test('no request is sent once a reply has reported the last one of the limit', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.rateLimit.remaining = 1
  expect(await relays.list()).toEqual([])
  const error = await failureOf(relays.list())
  expect(error).toMatchObject({ failure: 'throttled', retryAfterSeconds: 60 })
  expect(api.requests).toHaveLength(1)
})

test('a create that is throttled while it waits adopts its server when it is repeated', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.project.createMillis = 1000
  const spec = relaySpec()
  const created = failureOf(relays.create(spec, never()))
  await expect.poll(() => api.project.servers().length, { interval: 1 }).toBe(1)
  api.throttle(300)
  expect(await created).toMatchObject({ failure: 'throttled' })
  await expect
    .poll(() =>
      relays.create(spec, never()).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  expect(api.project.creations).toEqual(new Map([[spec.instanceId, 1]]))
})

test('wrong credentials name the variable, and a token for reading only names the permission', async () => {
  const api = await givenHetzner()
  const stranger = createHetznerRelays(api, { token: 'an-unknown-token' }).relays
  const reader = createHetznerRelays(api, { token: api.readOnlyToken }).relays
  for (const call of [stranger.check(), stranger.list(), stranger.create(relaySpec(), never())])
    expect(await failureOf(call)).toMatchObject({
      failure: 'give_up',
      detail: 'configuration',
      message: expect.stringContaining('check SVC_HETZNER_TOKEN'),
    })
  expect(await failureOf(reader.create(relaySpec(), never()))).toMatchObject({
    failure: 'give_up',
    detail: 'configuration',
    message: expect.stringContaining('Read & Write'),
  })
})

test('a redirect is not followed, so that the token reaches no other host', async () => {
  const { api, relays } = await givenHetznerRelays()
  const other = await givenHetzner()
  api.reply(1, { status: 302, body: '' }, { location: `${other.apiUrl}/servers` })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry' })
  expect(other.requests).toEqual([])
})

test('neither the token nor a secret of a relay appears in an error or a line of the log', async () => {
  const secrets = {
    relayAuthSecret: 'hetzner-1.0123456789abcdef',
    srtPassphrase: 'a-passphrase-of-streams',
  }
  const { api, relays, lines } = await givenHetznerRelays({
    requestMillisMax: 3000,
    userData: (spec) => JSON.stringify(spec),
  })
  const token = api.token
  const errors: RelayProviderError[] = []
  const attempt = async () => {
    const spec = relaySpec(secrets)
    errors.push(await failureOf(relays.create(spec, never())))
  }
  const message = `token ${token} and ${Object.values(secrets).join(' ')} in ${token}`
  for (const [status, code] of [
    [401, 'unauthorized'],
    [422, 'invalid_input'],
    [500, 'server_error'],
  ] as const) {
    api.refuse(1, code, { status, message })
    await attempt()
  }
  api.project.actionFailures.push({ command: 'create_server', error: { code: 'action_failed', message } })
  await attempt()
  api.reply(1, { status: 201, body: { server: { token } } })
  await attempt()
  api.loseReplies(1)
  await attempt()
  api.hang(1)
  await attempt()
  await relays.destroy((await relays.create(relaySpec(secrets), never())).instanceId)
  const wrong = createHetznerRelays(api, { token: `${token}\u0100` })
  errors.push(await failureOf(wrong.relays.list()))
  await api.close()
  await attempt()

  expect(errors).toHaveLength(9)
  expect(lines).toHaveLength(2)
  const seen = `${inspect(errors, { depth: 20, showHidden: true })}${JSON.stringify(errors)}${lines.join('')}${wrong.lines.join('')}`
  for (const secret of [token, 'a-generated-root-password', ...Object.values(secrets)])
    expect(seen).not.toContain(secret)
})
