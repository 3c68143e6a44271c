import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
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

async function givenSender() {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return {
    addr: `127.0.0.1:${socket.address().port}`,
    send: (bytes: number, port: number) =>
      new Promise<void>((done, fail) =>
        socket.send(Buffer.alloc(bytes), port, '127.0.0.1', (error) => (error ? fail(error) : done())),
      ),
  }
}

test('statistics count what is received, per address', async () => {
  const plane = await givenControlPlane()
  const state = await startRelay({ apiUrl: plane.url }).up()
  const [phone, modem] = [await givenSender(), await givenSender()]

  for (let n = 0; n < 3; n += 1) await phone.send(1_000, state.srtlaPort)
  await modem.send(1_000, state.srtlaPort)
  await modem.send(188, state.publishPort)

  const stats = await eventually(
    () => statsOf(state),
    ({ groups }) => groups.reduce((sum, group) => sum + group.total_bytes, 0) === 4_188,
  )
  expect(stats.ts).toBeGreaterThan(Date.now() - 60_000)
  const link = { last_ms_ago: expect.any(Number), uptime_s: 0 }
  expect(stats.groups).toEqual([
    {
      id: 'srtla',
      conn_count: 2,
      total_bytes: 4_000,
      connections: [
        { addr: phone.addr, bytes: 3_000, pkts: 3, share_pct: 75, ...link },
        { addr: modem.addr, bytes: 1_000, pkts: 1, share_pct: 25, ...link },
      ],
    },
    {
      id: 'publish',
      conn_count: 1,
      total_bytes: 188,
      connections: [{ addr: modem.addr, bytes: 188, pkts: 1, share_pct: 100, ...link }],
    },
  ])
  await eventually(
    () => plane.reports.at(-1)?.body.stats.groups.length,
    (count) => count === 2,
  )
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
  expect(await reply.json()).toEqual({ ts: expect.any(Number), groups: [] })
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

test('a relay ends about a second after SIGTERM and leaves no file behind', async () => {
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url })
  const { statsPort } = await relay.up()
  await fetch(`http://127.0.0.1:${statsPort}/stats`) // its connection is kept open
  const signalledAt = performance.now()

  relay.child.kill('SIGTERM')

  expect(await endOf(relay.child)).toBe(0)
  expect(performance.now() - signalledAt).toBeLessThan(1_500)
  expect(readdirSync(dirname(relay.stateFile))).toEqual([])
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
