import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { fakeInstanceId } from '../../support/fake-relay-provider.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'

test('a health report whose body drips in is refused after half a minute, and its session stays active', async () => {
  const service = await startFakeRelayService({ variables: { SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300' } })
  const user = await service.user()
  const { session_id } = await service.startActiveRelay(user)
  const url = new URL(service.api.url)
  const socket = connect(Number(url.port), url.hostname)
  await once(socket, 'connect')
  const startedAt = performance.now()
  const body = JSON.stringify({ session_id, instance_id: fakeInstanceId(session_id), stats: { publishing: true } })
  const [secret = ''] = service.api.services.config.relayAuthSecrets
  socket.write(
    `POST /api/v1/relay/health HTTP/1.1\r\nHost: ${url.host}\r\nContent-Type: application/json\r\nX-Relay-Auth: ${secret}\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  let sent = 0
  const drip = setInterval(() => socket.write(body.charAt(sent++)), 500)
  const reply = await text(socket)
  clearInterval(drip)
  expect(sent).toBeLessThan(body.length)
  expect(reply).toMatch(/^HTTP\/1\.1 400 /)
  expect(performance.now() - startedAt).toBeGreaterThan(25_000)
  expect(performance.now() - startedAt).toBeLessThan(45_000)
  expect((await user.active()).session).toMatchObject({ session_id, state: 'active', ingest: null })
})
