/** The whole service on a Temporal in which hours pass at once, and only when a test lets them. */
import { TestWorkflowEnvironment } from '@temporalio/testing'
import { searchAttributes } from '../../platform/temporal.ts'
import { atEnd } from './at-end.ts'
import { type FakeRelayService, startFakeRelayService } from './fake-relays.ts'
import { installRuntimeOnce } from './relays.ts'
import { longRelayTimeouts } from './subscribers.ts'
import { findTestServer } from './temporal-test-server.ts'

const keyword = 2

export interface SkippingService {
  readonly service: FakeRelayService
  /** The time there, in milliseconds since 1970. */
  now(): Promise<number>
  /** Lets that much time pass there. Everything that falls due meanwhile happens in its order. */
  pass(millis: number): Promise<void>
}

/** The SDK gives the server 5 s to start, too few for Java on a busy machine, which has read the files by then. */
async function startEnvironment(path: string): Promise<TestWorkflowEnvironment> {
  const start = () =>
    TestWorkflowEnvironment.createTimeSkipping({ server: { executable: { type: 'existing-path', path } } })
  return start().catch(start).catch(start)
}

/**
 * Starts the server for the tests of a file, which must run sequentially because they share its time.
 * @param others variables of the service.
 */
export async function startSkippingService(others: Readonly<Record<string, string>> = {}): Promise<SkippingService> {
  const path = await findTestServer((text) => process.stderr.write(`[time skipping] ${text}\n`))
  installRuntimeOnce()
  const environment = await startEnvironment(path)
  atEnd(() => environment.teardown())
  // It can't say which ones it has, as the worker asks it.
  await environment.connection.operatorService.addSearchAttributes({
    namespace: 'default',
    searchAttributes: Object.fromEntries(searchAttributes.map((name) => [name, keyword])),
  })
  // A relay's own longest duration counts from its row, which is of today however much time has passed there.
  const variables = {
    ...longRelayTimeouts,
    TEMPORAL_ADDRESS: environment.address,
    SVC_RELAY_MAX_SESSION_SECONDS: '2592000',
    ...others,
  }
  const service = await startFakeRelayService({ variables })
  return {
    service,
    now: async () => Number(await environment.currentTimeMs()),
    pass: (millis) => environment.sleep(millis),
  }
}
