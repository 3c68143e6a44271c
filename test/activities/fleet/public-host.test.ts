/** Relays of the local provider that bind another address than users get. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { testEnvironment } from '../../support/environment.ts'
import { startProgram } from '../../support/programs.ts'
import { startService } from '../../support/relays.ts'

const regionsWith = (values: object) =>
  JSON.stringify([{ region: 'local', display_name: 'Here', provider: 'local', ...values }])

test('relays bind all addresses of the machine, and users get the public name', async () => {
  const variables = { SVC_REGIONS: regionsWith({ host: '0.0.0.0', public_host: 'relay.example.com' }) }
  const { session } = await (await startService({ variables })).activeRelay()
  const kit = session.connect
  expect(kit?.srtla_url).toMatch(/^srtla:\/\/relay\.example\.com:\d+\?/)
  expect(kit?.srt_url).toMatch(/^srt:\/\/relay\.example\.com:\d+\?/)
  expect(kit?.player_url).toMatch(/^srt:\/\/relay\.example\.com:\d+\?/)
  const stats = new URL(kit?.stats_url ?? '')
  expect(stats.hostname).toBe('relay.example.com')
  // Not only at the loopback address that relays bind by default.
  expect((await fetch(`http://127.0.0.2:${stats.port}/stats`)).status).not.toBe(404)
  const { port } = new URL((kit?.srt_url ?? '').replace('srt:', 'http:'))
  expect(await answersInduction('127.0.0.2', Number(port))).toBe(true)
})

/** Whether an SRT listener answers the first packet of a handshake. */
async function answersInduction(host: string, port: number): Promise<boolean> {
  const induction = Buffer.alloc(64)
  induction.writeUInt32BE(0x8000_0000, 0)
  induction.writeUInt32BE(4, 16)
  induction.writeUInt16BE(2, 22)
  induction.writeUInt32BE(1_500, 28)
  induction.writeUInt32BE(8_192, 32)
  induction.writeUInt32BE(1, 36)
  induction.writeUInt32BE(7, 40)
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  socket.send(induction, port, host)
  const [reply] = (await once(socket, 'message')) as [Buffer]
  return reply.readUInt32BE(0) === 0x8000_0000
}

test('a worker whose region has an address of another machine ends at once, and says what to set', async () => {
  const worker = startProgram('worker', testEnvironment({ SVC_REGIONS: regionsWith({ host: '203.0.113.7' }) }))
  await expect.poll(worker.output, { timeout: 20_000 }).toContain('public_host')
  expect(worker.output()).toContain(
    'SVC_REGIONS, region local: host 203.0.113.7 is no address of this machine (EADDRNOTAVAIL): set host to one of its',
  )
  await worker.stop()
})
