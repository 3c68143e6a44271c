/** A relay whose engine is an SLS server. */
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { createSlsEngine } from '../../relay-node/sls-engine.ts'
import { parseHandshake, replaceStreamId } from '../../relay-node/srt-packets.ts'
import { givenSls, slsKey } from '../support/sls-server.ts'
import { conclusion, extension } from '../support/srt-packets.ts'

const streamName = 'local-0123456789abcdef'
const ids = { publisher: `publish/live/${streamName}`, player: `play/live/${streamName}` }

function givenEngine(apiUrl: string, apiKey = slsKey) {
  const logged: string[] = []
  const server = { apiUrl, apiKey, publishPort: 4001, playPort: 4000 }
  const log = (_level: string, text: string, fields?: object) => void logged.push(`${text} ${JSON.stringify(fields)}`)
  const engine = createSlsEngine({ server, streamName, log })
  onTestFinished(() => engine.close())
  return { engine, logged }
}

test('the stream ids of a relay are registered for its lifetime, and are its own instead of those with the token', async () => {
  const sls = await givenSls('OpenIRL')
  const { engine } = givenEngine(sls.apiUrl)
  expect(await engine.open('publish', 'srt')).toMatchObject({
    address: '127.0.0.1',
    port: 4001,
    streamId: ids.publisher,
  })
  expect(await engine.open('play', 'srt')).toMatchObject({ address: '127.0.0.1', port: 4000, streamId: ids.player })
  expect([...sls.registered]).toEqual([[ids.player, ids.publisher]])
  await engine.close()
  expect(sls.registered.size).toBe(0)
})

test('ids that a killed relay left registered are used again', async () => {
  const sls = await givenSls('OpenIRL')
  sls.registered.set(ids.player, ids.publisher)
  const { engine } = givenEngine(sls.apiUrl)
  expect(await engine.open('publish', 'srt')).toMatchObject({ streamId: ids.publisher })
})

test('while the server is away a connection fails, and the next one after its return succeeds', async () => {
  const sls = await givenSls('OpenIRL')
  await sls.close()
  const { engine, logged } = givenEngine(sls.apiUrl)
  await expect(engine.open('publish', 'srt')).rejects.toThrow()
  const returned = await givenSls('OpenIRL', { port: sls.port })
  await engine.open('publish', 'srt')
  expect(returned.registered.size).toBe(1)
  expect(logged.join()).toContain('the registration at SLS failed')
})

test('a wrong key refuses connections with the reason, which does not contain the key', async () => {
  const { apiUrl } = await givenSls('OpenIRL')
  const { engine, logged } = givenEngine(apiUrl, 'another-key')
  await expect(engine.open('publish', 'srt')).rejects.toThrow('SLS answered 401 to the registration of stream ids')
  await engine.close()
  expect(logged.join()).not.toContain('another-key')
})

test('a server without a register is used as it is, and disconnects a publisher on request, but not a player', async () => {
  const sls = await givenSls('irl-srt-server')
  const { engine, logged } = givenEngine(sls.apiUrl)
  const [publisher, player] = [await engine.open('publish', 'srt'), await engine.open('play', 'srt')]
  player.close()
  publisher.close()
  await engine.close()
  expect(sls.disconnected).toEqual([ids.publisher])
  expect(logged).toEqual([])
})

test('the disconnect of a publisher does not reach the next one', async () => {
  const sls = await givenSls('irl-srt-server', { disconnectMillis: 100 })
  const { engine } = givenEngine(sls.apiUrl)
  const first = await engine.open('publish', 'srt')
  first.close()
  await engine.open('publish', 'srt')
  expect(sls.disconnected).toEqual([ids.publisher])
})

test('a handshake gets another stream id and keeps everything else', () => {
  const text = fc.string({
    unit: fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
    minLength: 1,
  })
  fc.assert(
    fc.property(text, text, fc.nat(2 ** 32 - 1), (from, to, socketId) => {
      const encryption = extension(3, Buffer.from('a key message of 32 bytes length'))
      const packet = conclusion({ socketId, streamId: from, cookie: 5, extensions: [encryption] })
      const replaced = replaceStreamId(packet, to)
      expect(parseHandshake(replaced)).toEqual({ ...parseHandshake(packet), streamId: to })
      expect(replaced.includes(encryption)).toBe(true)
      expect(replaceStreamId(replaced, from).equals(packet)).toBe(true)
    }),
  )
})
