/** The real worker with a fake relay provider, since thousands of relay processes would dominate the measurement. */
import { installRuntime, startWorker } from '../activities/worker/start-worker.ts'
import { connectPostgres } from '../db/connection.ts'
import { readConfig } from '../platform/config/config.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import type { RelayInstance, RelayProvider } from '../providers/relay/provider.ts'
import { fakeInstanceId } from './data.ts'

function createFakeProvider(): RelayProvider {
  const instances = new Map<string, RelayInstance>()
  const endpoint = { host: '198.51.100.7', srtlaPort: 5000, publishPort: 4001, playPort: 4000, statsPort: 5080 }
  return {
    create: async ({ sessionId, region }) => {
      const instance = { instanceId: fakeInstanceId(sessionId), sessionId, region, endpoint, createdAt: new Date() }
      instances.set(instance.instanceId, instance)
      return instance
    },
    describe: async (instanceId) => instances.get(instanceId) ?? null,
    destroy: async (instanceId) => void instances.delete(instanceId),
    list: async (filter) => {
      if (filter === undefined) return [...instances.values()]
      const own = instances.get(fakeInstanceId(filter.sessionId))
      return own ? [own] : []
    },
  }
}

const config = readConfig()
const log = createLog('worker', config.logLevel)
const life = new Lifecycle(log)
installRuntime(log)
const stopRequest = life.waitForStopRequest()
const sql = connectPostgres(config.database.url, config.database.connectionsMax)
life.hold('database', sql, (it) => it.end({ timeout: 5 }))
const provider = createFakeProvider()
const providers = new Map(config.regions.map((one) => [one.region, provider]))
const onFailure = (error: unknown) => {
  log.fatal({ err: error }, 'the worker failed')
  process.exit(1)
}
await startWorker({ config, log, sql, life, providers, onFailure })
await stopRequest
await life.stop()
process.exit(0)
