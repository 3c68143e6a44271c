/** The rules of stable addresses and of names in the simulation. */
import type { Database } from '../../db/connection.ts'
import type { SimulatedProvider } from './fleet-provider.ts'

/** Longer than the trouble of a provider and the pauses after it. */
const leadSecondsMax = 30
/** Between a change at the provider and its row. */
const changeSecondsMax = 3

/** @returns a function that finds what has broken a rule for too long, when it is called again and again. */
export function watchAddresses(sql: Database, providers: readonly SimulatedProvider[]): () => Promise<string[]> {
  let since = new Map<string, number>()
  return async () => {
    const rows = await sql<{ text: string; host: string; region: string | null; instanceId: string | null }[]>`
      select format('session %s', id) as text, relay_host as host, region, instance_id from relay_sessions
      where state = 'active' and command = 'run' and relay_host is not null
      union all select format('name %s', label), shown_v4, null, null from relay_names where shown_v4 is not null`
    const present = rows.flatMap(({ text, host, region, instanceId }) => {
      const hosts = providers
        .filter((provider) => region === null || provider.region === region)
        .map((it) => it.hosts())
      const target = hosts.find((all) => all.has(host))?.get(host)
      if (target === undefined)
        return [{ text: `${text} leads to ${host}, which was released`, secondsMax: changeSecondsMax }]
      const isRight = instanceId === null || target === instanceId
      const secondsMax = leadSecondsMax
      return isRight
        ? []
        : [{ text: `${text} has ${host}, which leads to ${target} and not to ${instanceId}`, secondsMax }]
    })
    const now = Date.now()
    since = new Map(present.map(({ text }) => [text, since.get(text) ?? now]))
    return present
      .filter(({ text, secondsMax }) => now - (since.get(text) ?? now) > secondsMax * 1000)
      .map(({ text }) => text)
  }
}

/** Addresses that no warm instance has, and rows of such, after all sessions have ended. */
export async function findAddressesLeft(sql: Database, providers: readonly SimulatedProvider[]): Promise<string[]> {
  const rows = await sql<{ host: string }[]>`select host from relay_addresses`
  const stored = new Set(rows.map(({ host }) => host))
  const names = await sql<{ label: string }[]>`select label from relay_names where shown_v4 is not null`
  const left = providers.flatMap((provider) => {
    const used = new Set(provider.listExisting().map(({ endpoint }) => endpoint.host))
    const hosts = [...provider.hosts().keys()]
    return [
      ...hosts.filter((host) => !used.has(host)).map((host) => `${host} is left at the provider`),
      ...hosts.filter((host) => !stored.has(host)).map((host) => `${host} has no row`),
    ]
  })
  const known = new Set(providers.flatMap((provider) => [...provider.hosts().keys()]))
  return [
    ...left,
    ...[...stored].filter((host) => !known.has(host)).map((host) => `the row of ${host} is left`),
    ...names.map(({ label }) => `the name ${label} leads somewhere`),
  ]
}
