/** The check of a region's settings at Hetzner. */
import { expect, test } from 'vitest'
import { failureOf, givenHetznerRelays, hetznerRegion, never, relaySpec } from '../../support/hetzner.ts'

test.each([
  {},
  { server_type: 'cax11' },
  { image: '4711' },
  { server_type: '22', location: '1', image: '3001' },
  { server_type: 'cpx11', location: 'ash' },
  { ssh_keys: ['operations'] },
  { ssh_keys: ['2323'] },
])('the check accepts the settings %o and changes nothing', async (settings) => {
  const { api, relays } = await givenHetznerRelays({ region: hetznerRegion('eu', settings) })
  await relays.check()
  expect(new Set(api.requests.map(({ method }) => method))).toEqual(new Set(['GET']))
  expect((await relays.create(relaySpec(), never())).region).toBe('eu')
})

test.each([
  [{ server_type: 'cx99' }, 'hetzner.server_type "cx99" does not exist'],
  [{ server_type: '9999' }, 'hetzner.server_type "9999" does not exist'],
  [{ location: 'moon1' }, 'hetzner.location "moon1" does not exist'],
  [{ location: '9999' }, 'hetzner.location "9999" does not exist'],
  [{ location: 'ash' }, 'hetzner.server_type "cx22" is not offered in location "ash"'],
  [{ image: 'debian-99' }, 'hetzner.image "debian-99" does not exist'],
  [{ image: '9999' }, 'hetzner.image "9999" does not exist'],
  [{ image: '4711', server_type: 'cax11' }, 'hetzner.image "4711" is for x86, and cax11 is arm'],
  [{ image: '4712' }, 'hetzner.image "4712" is creating'],
  [{ ssh_keys: ['operations', 'lost'] }, 'hetzner.ssh_keys "lost" does not exist'],
  [{ ssh_keys: ['9999'] }, 'hetzner.ssh_keys "9999" does not exist'],
])('the check of %o fails and names the setting', async (settings, message) => {
  const { relays } = await givenHetznerRelays({ region: hetznerRegion('eu', settings) })
  const error = await failureOf(relays.check())
  expect(error).toMatchObject({ failure: 'give_up', detail: 'configuration' })
  expect(error.message).toContain('SVC_REGIONS, region "eu"')
  expect(error.message).toContain(message)
})

test('the check and a create refuse a region whose name no label of Hetzner can have', async () => {
  const { api, relays } = await givenHetznerRelays({ region: hetznerRegion('eu-') })
  for (const call of [relays.check(), relays.list(), relays.create(relaySpec(), never())])
    expect(await failureOf(call)).toMatchObject({ failure: 'give_up', detail: 'configuration' })
  expect(api.requests).toEqual([])
})

test('the check fails with the error of the API while that does not answer', async () => {
  const { api, relays } = await givenHetznerRelays()
  api.fail(1)
  expect(await failureOf(relays.check())).toMatchObject({ failure: 'retry' })
})
