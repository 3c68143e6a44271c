/**
 * A relay provider whose instances exist in memory only. Also used by measurements, so it imports nothing of vitest.
 */
import type { RelayInstance, RelayProvider } from '../../providers/relay/provider.ts'

/** The first instance of a session's fake relay: as if the provider had created it for the session before. */
export const fakeInstanceId = (sessionId: string): string => `fake-${sessionId}`

/** A provider that creates an instance at once and reports nothing. */
export function createFakeRelays(): RelayProvider {
  const instances = new Map<string, RelayInstance>()
  const ended = new Set<string>()
  /** By the reserved id, so that a repeated call adopts the instance. */
  const created = new Map<string, string>()
  const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }
  return {
    zones: 1,
    listLagSeconds: 0,
    check: async () => {},
    create: async ({ instanceId: reservedId, sessionId, region }) => {
      const first = sessionId === null ? undefined : fakeInstanceId(sessionId)
      const isFirst = first !== undefined && !ended.has(first) && !instances.has(first)
      const instanceId = created.get(reservedId) ?? (isFirst ? first : reservedId)
      created.set(reservedId, instanceId)
      const instance = { instanceId, providerId: null, sessionId, region, endpoint, createdAt: new Date() }
      instances.set(instance.instanceId, instance)
      return instance
    },
    hasEnded: async (instanceId) => ended.has(instanceId),
    describe: async (instanceId) => instances.get(instanceId) ?? null,
    destroy: async (instanceId) => {
      if (instances.delete(instanceId)) ended.add(instanceId)
    },
    list: async (filter) => {
      if (filter === undefined) return [...instances.values()]
      return [...instances.values()].filter(({ sessionId }) => sessionId === filter.sessionId)
    },
  }
}
