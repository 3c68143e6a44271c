/** Webhooks and Discord messages to users: signature, body, retries, private addresses. */
import { randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { beforeEach, describe, expect, test } from 'vitest'
import { webhookBody } from '../../../api/openapi/webhooks.ts'
import type { EndpointType, Notification } from '../../../domain/notifications/kinds.ts'
import { RetryLaterError, UndeliverableError } from '../../../domain/notifications/outbox.ts'
import { toDiscordMessage } from '../../../providers/webhooks/discord-message.ts'
import {
  createEndpointDelivery,
  type Endpoint,
  type EndpointMessage,
} from '../../../providers/webhooks/endpoint-delivery.ts'
import { type EndpointRules, publicEndpointRules } from '../../../providers/webhooks/endpoint-rules.ts'
import { localRules, startReceiver } from '../../support/receiver.ts'

const receiver = await startReceiver()
const secret = `whsec_${randomBytes(32).toString('base64')}`
const recorded: string[] = []
let endpoint: Endpoint | undefined

beforeEach(() => {
  recorded.length = receiver.requests.length = receiver.replies.length = 0
  endpoint = { id: 'e', type: 'webhook', url: receiver.url, secret, isDisabled: false }
})

const store = {
  find: async () => endpoint,
  recordSuccess: async () => void recorded.push('success'),
  recordFailure: async () => void recorded.push('failure'),
  recordGone: async () => void recorded.push('gone'),
}

const ended = (connectionId = 'main'): Notification => ({
  kind: 'relay_ended',
  timestamp: '2026-11-22T14:05:33.120Z',
  data: {
    session_id: '11111111-1111-4111-8111-111111111111',
    connection_id: connectionId,
    region: 'eu',
    reason: 'grace_elapsed',
    initiator: 'timer',
    cause: { reason: 'health_lost', initiator: 'system' },
    detail: null,
    created_at: '2026-11-22T12:00:00.000Z',
  },
})

const messageOf = (notification: Notification): EndpointMessage => ({
  userId: 'u',
  notification,
  link: 'https://relay.example/history/1',
  unsubscribeLink: 'https://relay.example/notifications/off?token=t',
})

interface Attempt {
  readonly type?: EndpointType
  readonly rules?: EndpointRules
  readonly notification?: Notification
}

const deliver = ({ type = 'webhook', rules = localRules(receiver), notification = ended() }: Attempt = {}) =>
  createEndpointDelivery(
    type,
    store,
    rules,
  )({ id: 'message-1', kind: notification.kind, content: messageOf(notification) }, new AbortController().signal)

const failureOf = async (attempt?: Attempt): Promise<Error> => {
  const outcome = await deliver(attempt).catch((error: unknown) => error)
  if (!(outcome instanceof Error)) throw new Error('it was delivered')
  return outcome
}

describe('a webhook', () => {
  test('is signed so that the Standard Webhooks library accepts it, and states the facts', async () => {
    await deliver()
    const [request] = receiver.requests
    const payload = new Webhook(secret).verify(request?.body ?? '', request?.headers as Record<string, string>)
    expect(payload).toMatchObject({
      type: 'relay_ended',
      timestamp: '2026-11-22T14:05:33.120Z',
      data: { connection_id: 'main', reason: 'grace_elapsed' },
      url: 'https://relay.example/history/1',
      unsubscribe_url: 'https://relay.example/notifications/off?token=t',
    })
    expect(request?.headers).toMatchObject({ 'webhook-id': 'message-1', 'content-type': 'application/json' })
    expect(recorded).toEqual(['success'])
  })

  test('has the body that the OpenAPI document describes', async () => {
    await deliver()
    const body = JSON.parse(receiver.requests[0]?.body ?? '')
    expect(webhookBody('relay_ended').strict().parse(body)).toEqual(body)
  })

  test('whose body was changed is refused by the library', async () => {
    await deliver()
    const [request] = receiver.requests
    const changed = request?.body.replace('main', 'other') ?? ''
    expect(() => new Webhook(secret).verify(changed, request?.headers as Record<string, string>)).toThrow()
  })

  test('that is answered with an error is retried, and its owner sees the status', async () => {
    receiver.replies.push({ status: 500 })
    expect(await failureOf()).toMatchObject({ message: expect.stringContaining('500') })
    await deliver()
    expect(recorded).toEqual(['failure', 'success'])
  })

  test.each([
    ['120', 120],
    ['999999', 3600],
    [new Date(Date.now() + 90_500).toUTCString(), 90],
  ])('with Retry-After: %s is attempted again after that time', async (value, seconds) => {
    receiver.replies.push({ status: 429, headers: { 'Retry-After': value } })
    const error = await failureOf()
    expect(error).toBeInstanceOf(RetryLaterError)
    expect(Math.abs((error as RetryLaterError).afterSeconds - seconds)).toBeLessThanOrEqual(2)
  })

  test('that is answered with 410 is given up, and its endpoint recorded as gone', async () => {
    receiver.replies.push({ status: 410 })
    expect(await failureOf()).toBeInstanceOf(UndeliverableError)
    expect(recorded).toEqual(['gone'])
  })

  test('follows no redirect', async () => {
    receiver.replies.push({ status: 307, headers: { Location: receiver.url } })
    expect(await failureOf()).not.toBeInstanceOf(UndeliverableError)
    expect(receiver.requests).toHaveLength(1)
  })

  test.each([
    ['was removed', undefined],
    ['has another type', { type: 'discord' }],
    ['is disabled', { isDisabled: true }],
  ] as const)('to an endpoint that %s is given up without a request', async (_, fields) => {
    endpoint = fields && endpoint && { ...endpoint, ...fields }
    expect(await failureOf()).toBeInstanceOf(UndeliverableError)
    expect([receiver.requests, recorded]).toEqual([[], []])
  })
})

describe('an address that is not public', () => {
  const hostRules = (resolve: EndpointRules['resolve']): EndpointRules => ({
    ...publicEndpointRules,
    protocols: ['http:'],
    isAllowedPort: () => true,
    resolve,
  })
  const loopback = { address: '127.0.0.1', family: 4 }

  test('gets no request, though it was saved before it was refused', async () => {
    endpoint = { id: 'e', type: 'webhook', url: receiver.url, secret, isDisabled: false }
    expect(await failureOf({ rules: publicEndpointRules })).toBeInstanceOf(UndeliverableError)
    expect(receiver.requests).toEqual([])
  })

  test('gets no request when a name resolves to it', async () => {
    endpoint = {
      id: 'e',
      type: 'webhook',
      url: `http://hooks.example.com:${receiver.port}/`,
      secret,
      isDisabled: false,
    }
    await failureOf({ rules: hostRules(async () => [loopback]) })
    expect(receiver.requests).toEqual([])
  })

  test('gets no request when a name has it besides a public one', async () => {
    endpoint = {
      id: 'e',
      type: 'webhook',
      url: `http://hooks.example.com:${receiver.port}/`,
      secret,
      isDisabled: false,
    }
    await failureOf({ rules: hostRules(async () => [{ address: '93.184.216.34', family: 4 }, loopback]) })
    expect(receiver.requests).toEqual([])
  })

  test('gets no request when a name resolves to it at the next lookup: only one lookup is made', async () => {
    endpoint = {
      id: 'e',
      type: 'webhook',
      url: `http://hooks.example.com:${receiver.port}/`,
      secret,
      isDisabled: false,
    }
    let lookups = 0
    // A public address without a receiver, then loopback. An address of the documentation cannot be reached.
    const rules: EndpointRules = {
      ...hostRules(async () => [++lookups === 1 ? { address: '127.0.0.2', family: 4 } : loopback]),
      isAllowedAddress: (address) => address === '127.0.0.2',
    }
    await failureOf({ rules })
    expect([lookups, receiver.requests]).toEqual([1, []])
  })

  test('is not named in the error', async () => {
    endpoint = { id: 'e', type: 'webhook', url: 'http://hooks.example.com:1/secret-path', secret, isDisabled: false }
    const { message } = await failureOf({
      rules: { ...hostRules(async () => [loopback]), isAllowedAddress: () => true },
    })
    expect(message).not.toMatch(/127\.0|secret-path|hooks\.example/)
  })
})

describe('an endpoint', () => {
  test('that closes the connection without a reply fails', async () => {
    const server = createServer((socket) => socket.destroy())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    endpoint = { id: 'e', type: 'webhook', url: `http://127.0.0.1:${port}/`, secret, isDisabled: false }
    expect(await failureOf()).not.toBeInstanceOf(UndeliverableError)
    server.close()
  })

  test('that sends its body without end does not hold the delivery', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n')
      const writing = setInterval(() => socket.write('x'.repeat(65536)), 1)
      socket.on('close', () => clearInterval(writing))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    endpoint = { id: 'e', type: 'webhook', url: `http://127.0.0.1:${port}/`, secret, isDisabled: false }
    // It would fail at the end of the time for a reply.
    await deliver()
    server.close()
  })

  test('that does not reply in time fails; it has ten seconds', async () => {
    receiver.replies.push(null)
    const { message } = await failureOf({ rules: { ...localRules(receiver), replyMillisMax: 200 } })
    expect(message).toBe('The endpoint did not reply within 0.2 seconds.')
    expect(publicEndpointRules.replyMillisMax).toBe(10_000)
  })
})

describe('a Discord message', () => {
  beforeEach(() => {
    const url = `http://127.0.0.1:${receiver.port}/api/webhooks/123/token`
    endpoint = { id: 'e', type: 'discord', url, secret: null, isDisabled: false }
  })

  test('is an embed without mentions', async () => {
    await deliver({ type: 'discord' })
    const [request] = receiver.requests
    expect(request?.path).toBe('/api/webhooks/123/token')
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      embeds: [{ title: expect.stringContaining('main'), url: 'https://relay.example/history/1' }],
      allowed_mentions: { parse: [] },
    })
  })

  test.each([401, 403, 404])('that is answered with %d has lost its webhook', async (status) => {
    receiver.replies.push({ status })
    expect(await failureOf({ type: 'discord' })).toBeInstanceOf(UndeliverableError)
    expect(recorded).toEqual(['gone'])
  })

  test('shows any name as text: no markdown, mention or link of it remains', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 80 }), (name) => {
        const message = toDiscordMessage(messageOf(ended(`*_~\`|[x](https://evil.example)@everyone<@1># ${name}`)))
        const [{ title = '' } = {}] = message.embeds
        // Every punctuation mark of the name has a backslash before it.
        expect(title.replaceAll(/\\[!-/:-@[-`{-~]/g, '')).not.toMatch(/[!-/:-@[-`{-~\n]/)
        expect(message.allowed_mentions).toEqual({ parse: [] })
      }),
    )
  })
})
