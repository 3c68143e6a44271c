/** The address of a client behind proxies. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { clientAddress, createKoa } from '../../../platform/koa/client-address.ts'
import { createLog } from '../../../platform/log.ts'

async function serve(trustedProxyHops: number) {
  const logged: string[] = []
  const app = createKoa(trustedProxyHops, createLog('api', 'info', { write: (line) => void logged.push(line) }))
  app.use((ctx) => {
    ctx.body = clientAddress(ctx)
  })
  const server = createServer(app.callback()).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const ask = async (forwarded: string) =>
    (await fetch(`http://127.0.0.1:${port}/`, { headers: { 'X-Forwarded-For': forwarded } })).text()
  return { ask, logged }
}

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7:51234', '203.0.113.7'],
  ['2001:db8::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:51234', '2001:db8::1'],
  ['"[2001:db8::1]:51234"', '2001:db8::1'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['[::ffff:203.0.113.7]:80', '203.0.113.7'],
  ['203.0.113.7:_port', '203.0.113.7'],
])('%s of the proxy is the address %s', async (entry, address) => {
  const { ask, logged } = await serve(1)
  expect([await ask(entry), logged]).toEqual([address, []])
})

test.each(['unknown', '_hidden', '203.0.113.7.example.com', '[203.0.113.7]', '999.1.1.1:80'])(
  '%s of the proxy is an address of its own, which is the same each time, and is logged once',
  async (entry) => {
    const { ask, logged } = await serve(1)
    const addresses = [await ask(entry), await ask(entry), await ask('_another')]
    expect(addresses[0]).toMatch(/^fd00:/)
    expect([addresses[1] === addresses[0], addresses[2] === addresses[0]]).toEqual([true, false])
    expect(logged).toHaveLength(1)
  },
)

test('entries that callers wrote are not believed', async () => {
  const { ask } = await serve(1)
  expect(await ask('198.51.100.1, 203.0.113.7:51234')).toBe('203.0.113.7')
  expect(await ask('198.51.100.1, unknown')).toBe(await ask('192.0.2.5, unknown'))
  const { ask: askWithoutProxy } = await serve(0)
  expect(await askWithoutProxy('198.51.100.1')).toBe('127.0.0.1')
})
