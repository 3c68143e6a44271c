/** A request whose body arrives too slowly. */
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { givePlan, startApi } from '../../support/api.ts'
import { writeActive } from '../../support/relay-rows.ts'
import type { OneSession } from '../../support/relays.ts'

const requestTimeout = 500

test('a health report whose body drips in is refused after the limit, and its session stays active', async () => {
  const secret = randomBytes(48).toString('base64')
  const http = { requestTimeout, headersTimeout: requestTimeout, connectionsCheckingInterval: 50 }
  const api = await startApi({ SVC_RELAY_AUTH_SECRET: secret }, { http })
  const { bearer, userId } = await api.given.user()
  await givePlan(api.sql, userId)
  const { session } = (
    await api.post<OneSession>('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } })
  ).body
  await writeActive(api.sql, session.session_id)
  const url = new URL(api.url)
  const socket = connect(Number(url.port), url.hostname)
  await once(socket, 'connect')
  const startedAt = performance.now()
  const report = { session_id: session.session_id, instance_id: 'i-1', stats: { publishing: true } }
  const body = JSON.stringify(report)
  socket.write(
    `POST /api/v1/relay/health HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nX-Relay-Auth: ${secret}\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  let sent = 0
  // A body that keeps coming is no reason to wait longer. Its last byte is never sent.
  const drip = setInterval(() => socket.write(body.charAt(sent < body.length - 1 ? sent++ : body.length)), 20)
  const reply = await text(socket)
  clearInterval(drip)
  expect(sent).toBeGreaterThan(1)
  expect(reply).toMatch(/^HTTP\/1\.1 400 /)
  expect(performance.now() - startedAt).toBeGreaterThan(requestTimeout - 10)
  const active = await api.get<OneSession>('/relay/active', { bearer })
  expect(active.body.session).toMatchObject({ session_id: session.session_id, state: 'active', ingest: null })
})
