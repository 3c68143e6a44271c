/** A relay that starts without a session, and gets one from the control plane. */
import { randomInt, randomUUID } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { reportUntilEnded } from '../../relay-node/health.ts'
import { conclusion, handshake, handshakeTypes, read } from '../support/srt-packets.ts'
import { refusal, run, stop } from './control-plane.ts'
import { endOf, eventually, givenControlPlane, noAdmissions, secret, startRelay, streamToken } from './running.ts'

async function givenUnboundRelay(variables = {}, intervalSeconds = 0.2) {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, isUnbound: true, intervalSeconds, variables })
  const assign = () => plane.assigns({ session_id: relay.sessionId, stream_token: streamToken })
  const reportCount = (least: number) =>
    eventually(
      () => plane.reports.length,
      (count) => count >= least,
    )
  return { plane, relay, assign, reportCount }
}

test('an unbound relay reports without a session, and with the assigned one as soon as it has it', async () => {
  // Longer than the test waits for the first report with the session.
  const { plane, relay, assign, reportCount } = await givenUnboundRelay({}, 300)
  await reportCount(2)
  assign()
  await reportCount(4)

  const [brief, unbound, first, second] = plane.reports
  // So that the assignment is not the first reply that the program reads.
  expect(brief?.body).toMatchObject({ session_id: null, wait_seconds: 0.1 })
  expect(unbound).toMatchObject({ secret, body: { session_id: null, instance_id: 'relay-1', wait_seconds: 15 } })
  expect(unbound?.body.stats).toMatchObject({ publishing: false, engine: 'none' })
  expect(first?.body).toMatchObject({ session_id: relay.sessionId, instance_id: 'relay-1' })
  expect(second?.body.session_id).toBe(relay.sessionId)
  // Ports are stated until a report with the session is accepted.
  expect(first?.body).toMatchObject({ wait_seconds: 7, binding: 1, ports: { publish: expect.any(Number) } })
  expect(second?.body).not.toHaveProperty('ports')
})

/** The type of the relay's reply to a publisher's handshake: a rejection code, since it has no engine. */
async function publishTo(port: number, host = '127.0.0.1'): Promise<number> {
  const socket = createSocket('udp4').bind(0, host)
  onTestFinished(() => void socket.close())
  await once(socket, 'listening')
  const ask = async (packet: Buffer) => {
    const reply = once(socket, 'message', { signal: AbortSignal.timeout(5_000) })
    socket.send(packet, port, host)
    return read((await reply)[0] as Buffer)
  }
  const { type, cookie } = await ask(handshake({ socketId: 77, version: 4 }))
  expect(type).toBe(handshakeTypes.induction)
  return (await ask(conclusion({ socketId: 77, cookie, streamId: `publish/live/${streamToken}` }))).type
}

const unauthorized = 2401
const withoutEngine = 2503

test('an unbound relay refuses every stream, and admits the token of its session from the assignment on', async () => {
  const { relay, assign, reportCount } = await givenUnboundRelay()
  const { sessionId, publishPort } = await relay.up()
  expect(sessionId).toBeNull()
  expect(await publishTo(publishPort)).toBe(unauthorized)

  assign()
  await reportCount(2)

  expect(await publishTo(publishPort)).toBe(withoutEngine)
  expect(relay.output()).toContain(relay.sessionId)
  expect(relay.output()).not.toContain(streamToken)
  expect(relay.output()).not.toContain(secret)
})

test('a relay binds its fixed ports at all addresses, and answers there', async () => {
  const [srtla, publish, play, stats] = await Promise.all([1, 2, 3, 4].map(findFreeUdpPort))
  const { relay } = await givenUnboundRelay({
    SVC_RELAY_HOST: '0.0.0.0',
    SVC_RELAY_SRTLA_PORT: `${srtla}`,
    SVC_RELAY_PUBLISH_PORT: `${publish}`,
    SVC_RELAY_PLAY_PORT: `${play}`,
    SVC_RELAY_STATS_PORT: `${stats}`,
  })

  expect(await relay.up()).toMatchObject({ srtlaPort: srtla, publishPort: publish, playPort: play, statsPort: stats })
  expect(await publishTo(publish ?? 0)).toBe(unauthorized)
  expect((await fetch(`http://127.0.0.1:${stats}/healthz`)).status).toBe(200)
})

/** Outside of the range that the system gives to other sockets, which could take the port before the relay binds it. */
async function findFreeUdpPort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 30_000)
    const socket = createSocket('udp4')
    const bound = await new Promise<boolean>((done) => {
      socket.once('error', () => done(false))
      socket.bind(port, () => done(true))
    })
    await new Promise<void>((done) => socket.close(() => done()))
    if (bound) return port
  }
}

describe('an unbound relay whose assignment has ports', () => {
  const portsOf = async () => {
    const [srtla = 0, publish = 0, play = 0, stats = 0] = await Promise.all([1, 2, 3, 4].map(findFreeUdpPort))
    return { srtla, publish, play, stats }
  }

  test('takes them before its first report with the session, and leaves its own', async () => {
    const { plane, relay, reportCount } = await givenUnboundRelay()
    const before = await relay.up()
    const ports = await portsOf()
    plane.assigns({ session_id: relay.sessionId, stream_token: streamToken, binding: 2, ports })
    await reportCount(2)

    const first = plane.from(relay.sessionId)[0]
    expect(first?.body).toMatchObject({ binding: 2, ports })
    expect(await publishTo(ports.publish)).toBe(withoutEngine)
    expect((await fetch(`http://127.0.0.1:${ports.stats}/healthz`)).status).toBe(200)
    await expect(fetch(`http://127.0.0.1:${before.statsPort}/healthz`)).rejects.toThrow()
    await eventually(
      () => relay.up(),
      (state) => state.publishPort === ports.publish,
    )
  })

  test('keeps all of its own when one of them is taken, and states those', async () => {
    const { plane, relay, reportCount } = await givenUnboundRelay()
    const before = await relay.up()
    const ports = await portsOf()
    const socket = createSocket('udp4').bind(ports.play, '127.0.0.1')
    onTestFinished(() => void socket.close())
    await once(socket, 'listening')
    plane.assigns({ session_id: relay.sessionId, stream_token: streamToken, binding: 1, ports })
    await reportCount(2)

    const { srtlaPort, publishPort, playPort, statsPort } = before
    expect(plane.from(relay.sessionId)[0]?.body).toMatchObject({
      ports: { srtla: srtlaPort, publish: publishPort, play: playPort, stats: statsPort },
    })
    expect(relay.output()).toContain('a port of the connection stays taken')
    expect(await publishTo(publishPort)).toBe(withoutEngine)
  })
})

test('a control plane that holds no replies gets at most five reports a second from an unbound relay', async () => {
  const { plane, reportCount } = await givenUnboundRelay()
  plane.holdsFor(0)
  await reportCount(6)
  const at = plane.reports.map((report) => report.at)
  const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0))
  expect(Math.min(...pauses)).toBeGreaterThan(190)
})

test('a relay keeps its session when a later reply assigns another one', async () => {
  const { plane, relay, assign, reportCount } = await givenUnboundRelay()
  assign()
  await reportCount(2)
  const other = { session_id: randomUUID(), stream_token: 'Zz99Yy88' }
  plane.answers({ status: 200, body: { desired: 'run', report_in_seconds: 0.1, assignment: other } })
  await reportCount(plane.reports.length + 3)
  expect(plane.reports.at(-1)?.body.session_id).toBe(relay.sessionId)
})

test('an unbound relay ends when the control plane does not need it', async () => {
  const { plane, relay, reportCount } = await givenUnboundRelay()
  await reportCount(1)
  plane.answers(stop)
  expect(await endOf(relay.child)).toBe(0)
})

test('a relay that gets an invalid assignment stays unbound, and shows no token', async () => {
  const { plane, relay, reportCount } = await givenUnboundRelay()
  plane.assigns({ session_id: relay.sessionId, stream_token: 'not-a-token' })
  await reportCount(3)
  expect(plane.reports.map(({ body }) => body.session_id)).not.toContain(relay.sessionId)
  expect(relay.output()).toContain('invalid assignment')
  expect(relay.output()).not.toContain('not-a-token')
})

test('an unbound relay reports again after an outage, and then gets its session', async () => {
  const { plane, relay, assign, reportCount } = await givenUnboundRelay()
  await reportCount(1)
  plane.answers(refusal(503, 'temporarily_unavailable'))
  await reportCount(3)

  plane.answers(run())
  assign()

  await eventually(
    () => plane.from(relay.sessionId).length,
    (count) => count >= 1,
  )
})

test('an unbound relay whose control plane does not have its instance ends when the answer is repeated', async () => {
  const plane = await givenControlPlane()
  plane.holdsFor(0)
  const ending = new AbortController()
  onTestFinished(() => ending.abort())
  const ended = reportUntilEnded({
    apiUrl: plane.url,
    authSecret: secret,
    sessionId: null,
    instanceId: 'relay-1',
    intervalSeconds: 0.2,
    admissions: noAdmissions,
    summarizeIngest: () => ({
      publishing: false,
      bitrate_kbps: 0,
      links: 0,
      players: 0,
      bytes_total: 0,
      publishing_ms_total: 0,
      peak_bitrate_kbps: 0,
      engine: 'none',
      refused: {},
      stalled_players: 0,
      last_refused: {},
    }),
    closeStreams: async () => {},
    denialMillisMin: 1_000,
    async onAssigned() {},
    log() {},
    signal: ending.signal,
  })
  // From its first accepted report on, the pauses after denials are short.
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )
  plane.answers(refusal(404, 'not_found'))
  const deniedAt = performance.now()
  expect(await ended).toMatch('404 not_found')
  expect(performance.now() - deniedAt).toBeGreaterThanOrEqual(1_000)
})
