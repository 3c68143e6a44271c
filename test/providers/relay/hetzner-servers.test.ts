/** The list of servers at Hetzner, page by page. */
import { expect, test } from 'vitest'
import { failureOf, givenHetznerRelays } from '../../support/hetzner.ts'

test('a list has all servers of all pages, each once', async () => {
  const { api, relays } = await givenHetznerRelays()
  for (let number = 0; number < 120; number++) {
    const name = `hetzner-${number}`
    api.project.addForeign(name, { 'svc-instance': name, 'svc-session': '', 'svc-region': 'eu' })
  }
  const ids = (await relays.list()).map(({ instanceId }) => instanceId)
  expect(ids.toSorted()).toEqual(Array.from({ length: 120 }, (_, number) => `hetzner-${number}`).toSorted())
})

test('a list does not lack a server because another one is deleted while the pages are read', async () => {
  const { api, relays } = await givenHetznerRelays()
  const servers = Array.from({ length: 120 }, (_, number) => {
    const name = `hetzner-${number}`
    return api.project.addForeign(name, { 'svc-instance': name, 'svc-session': '', 'svc-region': 'eu' })
  })
  api.latencyMillis = 20
  const listed = relays.list()
  // After each page a server of the first page is gone.
  for (const server of servers.slice(0, 3)) {
    const before = api.requests.length
    await expect.poll(() => api.requests.length, { interval: 1 }).toBeGreaterThan(before)
    api.project.delete(server)
  }
  const ids = new Set((await listed).map(({ instanceId }) => instanceId))
  expect(servers.slice(3).filter(({ name }) => !ids.has(name))).toEqual([])
})

test('a list rejects when one of its pages cannot be read', async () => {
  const { api, relays } = await givenHetznerRelays()
  for (let number = 0; number < 51; number++)
    api.project.addForeign(`hetzner-${number}`, { 'svc-instance': `hetzner-${number}`, 'svc-region': 'eu' })
  api.fail(1, { url: /page=2/ })
  expect(await failureOf(relays.list())).toMatchObject({ failure: 'retry' })
  expect(await relays.list()).toHaveLength(51)
})
