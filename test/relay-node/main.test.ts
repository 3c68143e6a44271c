/** The program of a relay: statistics, state file, one process for each instance. */
import { createSocket } from 'node:dgram'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { isFreePort } from '../../platform/embedded/ports.ts'
import { refusal, run } from './control-plane.ts'
import {
  endOf,
  eventually,
  givenControlPlane,
  givenFolder,
  secret,
  startRelay,
  statsOf,
  streamToken,
} from './running.ts'

test('datagrams of strangers appear neither in the statistics nor in the health report', async () => {
  const plane = await givenControlPlane()
  const state = await startRelay({ apiUrl: plane.url }).up()
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())

  for (const port of [state.srtlaPort, state.publishPort, state.playPort])
    await new Promise((done) => socket.send(Buffer.alloc(1_316), port, '127.0.0.1', done))

  const before = plane.reports.length
  await eventually(
    () => plane.reports.length,
    (count) => count > before + 1,
  )
  expect((await statsOf(state)).groups).toEqual([])
  expect(plane.reports.at(-1)?.body.stats).toMatchObject({ publishing: false, bytes_total: 0, links: 0 })
})

test('statistics are readable by any page and not cached, and there is no other path', async () => {
  const plane = await givenControlPlane()
  const { statsPort } = await startRelay({ apiUrl: plane.url }).up()
  const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${statsPort}${path}`, init)

  const reply = await ask('/stats?t=1')

  expect(reply.status).toBe(200)
  expect(Object.fromEntries(reply.headers)).toMatchObject({
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'access-control-allow-origin': '*',
  })
  expect(await reply.json()).toEqual({
    ts: expect.any(Number),
    engine: 'none',
    groups: [],
    timeline: { mode: 'off', segments: 0, filled_ms: 0 },
  })
  expect(await (await ask('/healthz')).json()).toEqual({ status: 'ok', instance_id: 'relay-1' })
  expect(await (await ask(`/stats?publisher=publish/live/${streamToken}`)).json()).toEqual({
    status: 'ok',
    publishers: {},
  })
  expect((await ask('/')).status).toBe(404)
  expect((await ask('/stats', { method: 'POST' })).status).toBe(404)
})

test('the state file has the ports of the relay and no secret, and only its owner can read it', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const state = await relay.up()

  expect(state).toEqual({
    instanceId: relay.instanceId,
    sessionId: relay.sessionId,
    region: 'local',
    pid: relay.child.pid,
    host: '127.0.0.1',
    srtlaPort: expect.any(Number),
    publishPort: expect.any(Number),
    playPort: expect.any(Number),
    statsPort: expect.any(Number),
    startedAt: expect.any(String),
  })
  const { mode } = statSync(relay.stateFile)
  expect(mode & 0o777).toBe(0o600)
  const text = readFileSync(relay.stateFile, 'utf8') + relay.child.spawnargs.join(' ') + relay.output()
  expect(text).not.toContain(secret)
  expect(text).not.toContain(streamToken)
})

test('a relay waits for the ports of its connection until the relay before it has ended', async () => {
  const plane = await givenControlPlane()
  const before = startRelay({ apiUrl: plane.url })
  const { srtlaPort, publishPort, playPort, statsPort } = await before.up()
  const ports = { srtlaPort, publishPort, playPort, statsPort }

  const next = startRelay({
    apiUrl: plane.url,
    variables: { SVC_RELAY_PREFERRED_PORTS: Object.values(ports).join(',') },
  })
  await eventually(next.output, (output) => output.includes('waiting until it is free'))
  before.child.kill('SIGTERM')

  expect(await next.up()).toMatchObject(ports)
  expect(next.output()).not.toContain('stays taken')
})

test('a relay that is stopped has released its ports when it reports for the last time', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const { statsPort } = await relay.up()
  await eventually(
    () => plane.from(relay.sessionId).length,
    (count) => count > 0,
  )
  const released: boolean[] = []
  plane.onReport(async ({ wait_seconds, is_extra }) => {
    // Of the usual reports only the last one asks for no held reply.
    if (wait_seconds === undefined && !is_extra) released.push(await isFreePort(statsPort))
  })

  relay.child.kill('SIGTERM')

  expect(await endOf(relay.child)).toBe(0)
  expect(released).toEqual([true])
})

test('a relay keeps running when its output is closed', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  await relay.up()
  relay.child.stdout?.destroy()
  const before = plane.reports.length

  plane.answers({ status: 503, body: {} }) // which it logs

  await eventually(
    () => plane.reports.length,
    (count) => count > before + 3,
  )
  expect(relay.isRunning()).toBe(true)
})

test('of several processes of one instance exactly one keeps running', async () => {
  const plane = await givenControlPlane()
  const folder = givenFolder()
  const start = () => startRelay({ apiUrl: plane.url, folder, sessionId: '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10' })
  const first = start()
  const { pid } = await first.up()

  const late = [start(), start()]

  expect(await Promise.all(late.map(({ child }) => endOf(child)))).toEqual([3, 3])
  expect(first.isRunning()).toBe(true)
  expect((await first.up()).pid).toBe(pid)
})

test('a relay takes over from one that was killed', async () => {
  const plane = await givenControlPlane()
  const folder = givenFolder()
  const killed = startRelay({ apiUrl: plane.url, folder })
  await killed.up()
  killed.child.kill('SIGKILL')
  await endOf(killed.child)
  expect(existsSync(killed.stateFile)).toBe(true)

  const next = startRelay({ apiUrl: plane.url, folder })

  await eventually(
    () => next.up(),
    (state) => state.pid === next.child.pid,
  )
  expect(readdirSync(folder).filter((name) => name.includes('.lock.'))).toEqual(['relay-1.json.lock.2'])
})

test('a lock whose pid now belongs to another process is ignored', async () => {
  const plane = await givenControlPlane()
  const folder = givenFolder()
  symlinkSync(`${process.pid} of-another-process`, `${folder}/relay-1.json.lock.7`)

  const state = await startRelay({ apiUrl: plane.url, folder }).up()

  expect(state.instanceId).toBe('relay-1')
})

test('a relay with invalid settings reports all problems and does not start', async () => {
  const relay = startRelay({ apiUrl: 'nowhere', sessionId: 'none' })
  expect(await endOf(relay.child)).toBe(2)
  expect(relay.output()).toContain('--session is not a UUID')
  expect(relay.output()).toContain('SVC_RELAY_API_URL is not an http(s) URL')
})

test('a relay keeps running when its log cannot be written', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, logFile: '/dev/full' })
  await eventually(
    () => plane.reports.length,
    (count) => count >= 2,
  )
  // Each change of the outcome is a line.
  plane.answers(refusal(503, 'temporarily_unavailable'))
  await eventually(
    () => plane.reports.length,
    (count) => count >= 4,
  )
  plane.answers(run())
  const before = plane.reports.length
  await eventually(
    () => plane.reports.length,
    (count) => count >= before + 3,
  )
  relay.child.kill('SIGTERM')
  expect(await endOf(relay.child)).toBe(0)
})
