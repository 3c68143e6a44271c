/** Names of relays at a real name server: what is written, what is left alone, and what is refused. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDynamicUpdates, type RelayNames } from '../../providers/dns/dynamic-updates.ts'
import { type NameServer, startNameServer, zone } from '../support/name-server.ts'

let server: NameServer & { close(): Promise<void> }
let names: RelayNames
const namesOf = (fleetName: string, key = server.key): RelayNames =>
  createDynamicUpdates({ domain: zone, fleetName, key, server: { host: '127.0.0.1', port: server.port } })

beforeAll(async () => {
  server = await startNameServer()
  names = namesOf('tests')
})
afterAll(() => server.close())

describe('a name', () => {
  test('is created with the mark of its fleet, changed, and leads nowhere while no relay runs', async () => {
    await names.point('alpha', { v4: '192.0.2.10', v6: '2001:db8::a' })
    expect(await server.addressesOf('alpha')).toEqual({ v4: ['192.0.2.10'], v6: ['2001:db8::a'] })
    expect(await server.textsOf('alpha')).toEqual(['svc-fleet=tests'])
    await names.point('alpha', { v4: '192.0.2.11', v6: null })
    await names.point('alpha', { v4: '192.0.2.11', v6: null })
    expect(await server.addressesOf('alpha')).toEqual({ v4: ['192.0.2.11'], v6: [] })
    await names.point('alpha', { v4: null, v6: null })
    expect(await server.addressesOf('alpha')).toEqual({ v4: [], v6: [] })
    expect(await server.textsOf('alpha')).toEqual(['svc-fleet=tests'])
  })

  test('is removed whole, and again', async () => {
    await names.point('beta', { v4: '192.0.2.12', v6: null })
    await names.remove('beta')
    await names.remove('beta')
    expect([await server.addressesOf('beta'), await server.textsOf('beta')]).toEqual([{ v4: [], v6: [] }, []])
  })

  test('without the mark is left alone', async () => {
    await expect(names.point('foreign', { v4: '192.0.2.13', v6: null })).rejects.toMatchObject({ failure: 'foreign' })
    await names.remove('foreign')
    expect((await server.addressesOf('foreign')).v4).toEqual(['192.0.2.1'])
  })

  test('of another fleet is left alone', async () => {
    const others = namesOf('others')
    await others.point('gamma', { v4: '192.0.2.14', v6: null })
    await expect(names.point('gamma', { v4: '192.0.2.15', v6: null })).rejects.toMatchObject({ failure: 'foreign' })
    await names.remove('gamma')
    expect((await server.addressesOf('gamma')).v4).toEqual(['192.0.2.14'])
  })
})

test('a wrong key changes nothing', async () => {
  const wrong = namesOf('tests', { name: server.key.name, secret: randomBytes(32) })
  await expect(wrong.point('delta', { v4: '192.0.2.16', v6: null })).rejects.toMatchObject({ name: 'NameError' })
  expect(await server.addressesOf('delta')).toEqual({ v4: [], v6: [] })
})

test('a server that is away is reported, and the same call succeeds once it is back', async () => {
  await server.stop()
  await expect(names.point('epsilon', { v4: '192.0.2.17', v6: null })).rejects.toMatchObject({ failure: 'unreachable' })
  await server.start()
  await names.point('epsilon', { v4: '192.0.2.17', v6: null })
  expect((await server.addressesOf('epsilon')).v4).toEqual(['192.0.2.17'])
})
