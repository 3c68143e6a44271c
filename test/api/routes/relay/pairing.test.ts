/** The pair token, with which a phone gets the addresses to publish to. */
import { randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { statusAndCode, streamTokenOf } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { writeActive, writeStopped } from '../../../support/relay-rows.ts'
import { startService, type TestService } from '../../../support/relays.ts'

/** Without a worker, so that sessions keep the state in which they were accepted. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

const pair = <Body = object>(token: string | undefined, { api }: TestService = service, ip = '192.0.2.1') =>
  api.get<Body>('/relay/pair', { ip, headers: token === undefined ? {} : { 'X-Pair-Token': token } })

async function startedSession(at: TestService = service) {
  const user = await at.user()
  const { session } = (await user.start()).body
  return { user, session, pairToken: session.pair_token ?? '' }
}

test('a pair token is exchanged for the addresses to publish to, and for nothing else', async () => {
  const { user, session, pairToken } = await startedSession()
  await writeActive(service.api.sql, session.session_id)
  const streamToken = await streamTokenOf(service.api, user.userId)
  const reply = await pair(pairToken)
  expect([reply.status, reply.headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(reply.body).toEqual({
    srtla_url: `srtla://198.51.100.7:5000?streamid=publish/live/${streamToken}`,
    srt_url: `srt://198.51.100.7:4001?streamid=publish/live/${streamToken}`,
  })
})

test('before the relay has an address the holder is asked to try again, and the log has no error', async () => {
  const { pairToken } = await startedSession()
  const reply = await pair(pairToken)
  expect(statusAndCode(reply)).toEqual([503, 'temporarily_unavailable'])
  expect([reply.headers.get('retry-after'), reply.headers.get('cache-control')]).toEqual(['2', 'no-store'])
  expect(service.api.logged.filter((line) => line.includes('request failed'))).toEqual([])
})

describe('a token that gives no access', () => {
  test('is answered like an unknown one when it is missing, malformed, of another kind, or of a stopped session', async () => {
    const { user, session, pairToken } = await startedSession()
    const { sql } = service.api
    const replies = [await pair(randomBytes(24).toString('base64url'))]
    for (const token of [
      undefined,
      '',
      'x',
      "' or true --",
      'x'.repeat(8000),
      session.relay_ws_token ?? '',
      user.bearer,
    ])
      replies.push(await pair(token))
    await writeStopped(sql, session.session_id)
    replies.push(await pair(pairToken))
    expect(replies.map(statusAndCode)).toEqual(replies.map(() => [404, 'not_found']))
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  })

  test('counts against the limit of its network, as a valid one does', async () => {
    const limited = await startService({ worker: false, variables: { SVC_RATE_LIMITS: highLimits({ pair: 2 }) } })
    const { session, pairToken } = await startedSession(limited)
    await writeActive(limited.api.sql, session.session_id)
    const statuses = []
    for (const token of ['wrong', 'wrong', pairToken]) statuses.push((await pair(token, limited)).status)
    expect(statuses).toEqual([404, 404, 429])
    expect((await pair(pairToken, limited)).headers.get('retry-after')).toMatch(/^\d+$/)
    expect((await pair(pairToken, limited, '192.0.2.2')).status).toBe(200)
  })
})

test('a token that was sealed with the previous key is found after a rotation', async () => {
  const { session, pairToken } = await startedSession()
  await writeActive(service.api.sql, session.session_id)
  const { database, oauthEncryptionKeys } = service.api.services.config
  const previous = oauthEncryptionKeys.map(({ id, key }) => `${id}:${key}`)
  const rotated = await startService({
    worker: false,
    variables: {
      DATABASE_URL: database.url,
      OAUTH_ENCRYPTION_KEY: [`new:${randomBytes(32).toString('base64')}`, ...previous].join(','),
    },
  })
  expect((await pair(pairToken, rotated)).status).toBe(200)
})
