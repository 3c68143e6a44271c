/** The whole service with fake relays: they exist in memory only, and the test sends their health reports. */
import { expect } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Lifecycle } from '../../platform/lifecycle.ts'
import type { RelayProvider } from '../../providers/relay/provider.ts'
import type { Answer, ErrorBody } from './api.ts'
import { createFakeRelays, fakeInstanceId } from './fake-relay-provider.ts'
import { type RelayJobName, runRelayJob } from './relay-jobs.ts'
import { eventually, type RelayUser, startService, startTestWorker, type TestService } from './relays.ts'

export interface FakeRelayService extends TestService {
  readonly relayProvider: RelayProvider
  /** Sends a health report of the session's instance. @param fields of the report, beside its ids. */
  sendReport(sessionId: string, fields?: object): Promise<Answer<Partial<ErrorBody>>>
  /** Starts a relay and makes it active with one report. @param body of the request. */
  startActiveRelay(user: RelayUser, body?: object): Promise<SessionView>
  /** Runs a job of the worker once, in this process. */
  runJob(name: RelayJobName): Promise<void>
  startWorker(version?: Config['workerVersion']): Promise<Lifecycle>
}

interface Options {
  readonly variables?: Readonly<Record<string, string>>
  /** Whether a worker is started at once; true by default. */
  readonly worker?: boolean
}

export async function startFakeRelayService({
  variables = {},
  worker = true,
}: Options = {}): Promise<FakeRelayService> {
  const relayProvider = createFakeRelays()
  const service = await startService({ variables, worker, around: () => relayProvider })
  const { api } = service
  const sendReport: FakeRelayService['sendReport'] = (sessionId, fields = {}) => {
    const [secret = ''] = api.services.config.relayAuthSecrets
    const report = { session_id: sessionId, instance_id: fakeInstanceId(sessionId), ...fields }
    return api.post('/relay/health', report, { headers: { 'X-Relay-Auth': secret } })
  }
  return {
    ...service,
    relayProvider,
    sendReport,
    startActiveRelay: async (user, body = {}) => {
      const started = await user.start(body)
      expect(started.status).toBe(201)
      const { session_id } = started.body.session
      const find = async () => (await user.active()).sessions.find((session) => session.session_id === session_id)
      await eventually(find, (session) => session?.instance_id != null)
      await sendReport(session_id)
      return (await eventually(find, (session) => session?.state === 'active')) as SessionView
    },
    runJob: (name) => {
      const names = api.services.config.regions.map(({ region }) => region)
      return runRelayJob(api, name, new Map(names.map((region) => [region, relayProvider])))
    },
    startWorker: (version) => startTestWorker(api, () => relayProvider, version),
  }
}
