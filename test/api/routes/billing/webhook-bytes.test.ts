/** Webhooks of unusual bytes: which are read, which are parked, and which are refused. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import {
  billingEvent,
  findEvent,
  rawWebhook,
  type SandboxSender,
  sandboxSender,
  signedHeaders,
  webhookHead,
} from '../../../support/billing.ts'
import { sendRaw } from '../../../support/raw-http.ts'
import { eventually, operatorPassword, passageTo, startService } from '../../../support/relays.ts'

const bytesMax = 256 * 1024
const subscription_id = 'sub_of_bytes'

let api: TestApi
let provider: SandboxSender
let secret: string
beforeAll(async () => {
  api = (await startService({ worker: false })).api
  provider = sandboxSender(api)
  secret = api.services.config.billing.webhookSecrets[0] ?? ''
})

const rowsOf = async (id: string) => (await api.sql`select from billing_events where event_key = ${id}`).length

/** What operators see of signed bytes that were taken. */
const kept = async (body: string | Buffer) => {
  const id = randomUUID()
  const answer = await provider.send(body, { id })
  expect([answer.status, answer.body]).toEqual([200, { received: true }])
  const [row] = await api.sql<{ body: Buffer }[]>`select body from billing_events where event_key = ${id}`
  expect(row?.body.equals(Buffer.from(body))).toBe(true)
  return findEvent(api, id)
}

/** The JSON of an event with this in the place of a value. */
const eventWith = (name: string, json: string): string =>
  JSON.stringify(billingEvent('addon.updated', { subscription_id, quantity: 1, [name]: 'HERE' })).replace(
    '"HERE"',
    json,
  )

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const noJson = 'body: not JSON in UTF-8'

describe('signed bytes that are not a valid event are parked with the problem:', () => {
  const bare = JSON.stringify(billingEvent('payment.failed'))
  test.each<[string, string | Buffer, string]>([
    ['no bytes', '', noJson],
    ['a byte order mark before an event', `\ufeff${bare}`, noJson],
    ['a truncated event', bare.slice(0, -9), noJson],
    ['two events', bare + bare, noJson],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), noJson],
    ['invalid UTF-8 within an event', Buffer.from(eventWith('user_id', '"\xff"'), 'latin1'), noJson],
    ['UTF-16', Buffer.from(bare, 'utf16le'), noJson],
    ['NUL bytes', Buffer.alloc(64), noJson],
    ['null', 'null', 'body: '],
    ['an array', '[]', 'body: '],
    ['a number', '7', 'body: '],
    ['a huge number', '9'.repeat(100_000), 'body: '],
    ['a string', '"subscription.activated"', 'body: '],
    ['100,000 nested arrays', nested(100_000), 'body: '],
    ['25,000 nested objects', `${'{"data":'.repeat(25_000)}1${'}'.repeat(25_000)}`, 'type: '],
    ['an event with nested arrays', eventWith('user_id', nested(100_000)), 'data.user_id: '],
    ['an event without data', bare.replace('"data"', '"date"'), 'data: '],
    ['a NUL in a text', eventWith('user_id', String.raw`"a\u0000b"`), 'data.user_id: '],
    ['an unpaired surrogate', eventWith('user_id', String.raw`"\ud800"`), 'data.user_id: '],
    ['a NUL in its type', bare.replace('payment.failed', String.raw`payment\u0000failed`), 'type: '],
    ['a very long text', eventWith('user_id', `"${'x'.repeat(200_000)}"`), 'data.user_id: '],
    ['a very long type', bare.replace('payment.failed', 'y'.repeat(200_000)), 'type: '],
    ['a type that is a property of Object.prototype', bare.replace('payment.failed', 'constructor'), 'type: '],
    ['prototypes', `{"__proto__":${bare},"constructor":{"prototype":{"type":"x"}}}`, 'type: '],
    ['a quantity beyond numbers', eventWith('quantity', '1e999'), 'data.quantity: '],
    ['an invalid date', bare.replace(/"occurred_at":"[^"]+"/, '"occurred_at":"yesterday"'), 'occurred_at: '],
    ['a date that does not exist', bare.replace(/\d{4}-\d\d-\d\dT/, '2026-02-30T'), 'occurred_at: '],
    ['the year 0', bare.replace(/\d{4}-\d\d-\d\dT/, '0000-01-01T'), 'occurred_at: is not a time '],
    [
      'a time after the year 9999',
      bare.replace(/"occurred_at":"[^"]+"/, '"occurred_at":"9999-12-31T23:59:59-10:00"'),
      'occurred_at: is not a time ',
    ],
    [
      'a period of the year 0',
      eventWith('period_start', '"0000-01-01T00:00:00Z"'),
      'data.period_start: is not a time ',
    ],
    [
      'a period after the year 9999',
      eventWith('period_end', '"9999-12-31T23:59:59-10:00"'),
      'data.period_end: is not a time ',
    ],
  ])('%s', async (_, body, problem) => {
    const event = await kept(body)
    expect(event).toMatchObject({ status: 'parked', action: null, occurred_at: null })
    expect(event?.error).toMatch(new RegExp(`^${problem}`))
    expect(event?.error?.length).toBeLessThan(300)
  })
})

describe('an event is read', () => {
  test('with the last value of a repeated key', async () => {
    const twice = JSON.stringify(billingEvent('payment.failed')).replace('{"type"', '{"type":"payment.refunded","type"')
    expect(await kept(twice)).toMatchObject({ type: 'payment.failed', action: 'payment_failed' })
  })

  test('with unknown keys', async () => {
    const more = JSON.stringify({ ...billingEvent('payment.failed'), ['__proto__']: { type: 'x' }, hint: nested(9) })
    expect(await kept(more)).toMatchObject({
      action: 'payment_failed',
      error: 'no account is known for this subscription',
    })
  })

  test('with any content type', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'image/png; x',
      ';',
      'application/json;charset=latin1',
    ])
      expect((await provider.send(billingEvent('payment.failed'), { headers: { 'Content-Type': type } })).status).toBe(
        200,
      )
    const body = JSON.stringify(billingEvent('payment.failed'))
    const { status } = await rawWebhook(api, body, signedHeaders(secret, body, {}))
    expect(status).toBe(200)
  })

  test('without decompression', async () => {
    const bytes = gzipSync(JSON.stringify(billingEvent('payment.failed')))
    const id = randomUUID()
    const { status } = await provider.send(bytes, { id, headers: { 'Content-Encoding': 'gzip' } })
    expect(status).toBe(200)
    expect(await findEvent(api, id)).toMatchObject({ status: 'parked', error: 'body: not JSON in UTF-8' })
    const [row] = await api.sql<{ body: Buffer }[]>`select body from billing_events where event_key = ${id}`
    expect(row?.body.equals(bytes)).toBe(true)
  })
})

describe('a body', () => {
  test('of exactly 256 KiB is accepted', async () => {
    const [head, tail] = ['{"hint":"', '"}']
    expect(await kept(`${head}${'x'.repeat(bytesMax - head.length - tail.length)}${tail}`)).toMatchObject({
      status: 'parked',
    })
  })

  test('of one byte more or of a megabyte is refused and not stored', async () => {
    for (const length of [bytesMax + 1, 1024 * 1024]) {
      const id = randomUUID()
      const answer = await provider.send('x'.repeat(length), { id })
      expect([statusAndCode(answer), await rowsOf(id)]).toEqual([[413, 'payload_too_large'], 0])
    }
  })

  test('of a megabyte without Content-Length is refused', async () => {
    const body = 'x'.repeat(1024 * 1024)
    const headers = { 'Transfer-Encoding': 'chunked', ...signedHeaders(secret, body, { id: 'chunked' }) }
    const answer = await sendRaw(
      api.url,
      webhookHead(api, headers),
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    )
    expect([answer.status, JSON.parse(answer.body).error.code, await rowsOf('chunked')]).toEqual([
      413,
      'payload_too_large',
      0,
    ])
  })

  test('in chunks is accepted', async () => {
    const body = JSON.stringify(billingEvent('payment.failed'))
    const id = randomUUID()
    const headers = { 'Transfer-Encoding': 'chunked', ...signedHeaders(secret, body, { id }) }
    const chunks = [body.slice(0, 20), body.slice(20)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`)
    const answer = await sendRaw(api.url, webhookHead(api, headers), ...chunks, '0\r\n\r\n')
    expect([answer.status, (await findEvent(api, id))?.action]).toEqual([200, 'payment_failed'])
  })

  test('that is incomplete is not stored', async () => {
    const body = JSON.stringify(billingEvent('payment.failed'))
    const id = randomUUID()
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const headers = { 'Content-Length': String(body.length), ...signedHeaders(secret, body, { id }) }
    await new Promise((resolve) => socket.write(webhookHead(api, headers) + body.slice(0, -1), resolve))
    socket.destroy()
    await eventually(
      () => api.logged.filter((line) => line.includes('/billing/webhook') && line.includes('"status":400')).length,
      (count) => count > 0,
    )
    expect(await rowsOf(id)).toBe(0)
    expect((await provider.send(body, { id })).status).toBe(200)
  })
})

describe('while Postgres is unreachable', () => {
  test('a webhook is refused, and the next attempt of the provider is accepted', async () => {
    const passage = await passageTo((await startApi()).services.config.database.url)
    const behind = await startApi({ DATABASE_URL: passage.url, SVC_OPERATOR_PASSWORD: operatorPassword })
    const sender = sandboxSender(behind)
    const [event, id] = [billingEvent('payment.failed'), randomUUID()]
    await passage.block()
    const refused = await sender.send(event, { id })
    expect([statusAndCode(refused), Number(refused.headers.get('retry-after')) > 0]).toEqual([
      [503, 'temporarily_unavailable'],
      true,
    ])
    expect(statusAndCode(await sender.send(event, { id, at: new Date(0) }))).toEqual([401, 'invalid_signature'])
    await passage.open()
    await eventually(
      async () => (await sender.send(event, { id })).status,
      (status) => status === 200,
    )
    expect(await findEvent(behind, id)).toMatchObject({ action: 'payment_failed' })
  })
})
