/**
 * The history events of a relay session workflow: per steady health report, and for a short and an eventful session.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordCommand } from '../db/relay/commands.ts'
import { recordReports } from '../db/relay/health.ts'
import { findRelaySession } from '../db/relay/sessions.ts'
import { readIngest } from '../domain/relay/ingest.ts'
import { fakeInstanceId } from '../test/support/fake-relay-provider.ts'
import * as messages from '../workflows/messages.ts'
import { createRelaySessionWorkflows, type RelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import type { BenchUser } from './data.ts'
import { figures } from './figures.ts'
import { type RelayBench, report, reserve } from './relay-latency.ts'
import { type Row, single } from './rows.ts'
import { logProgress, type Stack, waitUntil } from './stack.ts'

const steadyReports = 1000
const shortSeconds = 1
/** Long enough for the start that cancels the stop, on a busy machine too. */
const stopGraceSeconds = 5

export async function measureLifecycle({ stack, api, data }: RelayBench): Promise<Row[]> {
  const settings = { ...api.config.relay, healthTimeoutSeconds: shortSeconds, stopGraceSeconds }
  const { taskQueue } = api.config.temporal
  const workflows = createRelaySessionWorkflows(stack.temporal, {
    taskQueue,
    settings,
    callMillisMax: 10_000,
    findMaskedEmail: async () => null,
  })
  const beginLife = async (connectionId: string) => Life.begin(stack, workflows, data.users[0], connectionId)

  logProgress('history of a session: start, active, a thousand reports, stop')
  const plain = await beginLife('plain-life')
  await plain.becomeActive()
  const before = await plain.historyEvents()
  for (let sent = 0; sent < steadyReports; sent += 1) await report(api, plain.sessionId)
  const eventsPerReport = ((await plain.historyEvents()) - before) / steadyReports
  await plain.order('stop')
  await plain.waitForEnd()

  logProgress('history of another: lost health and recovery twice, a cancelled stop, and a stop')
  const eventful = await beginLife('eventful-life')
  await eventful.becomeActive()
  await eventful.loseAndRestoreHealth()
  await eventful.order('stop')
  await eventful.order('run')
  await eventful.loseAndRestoreHealth()
  await eventful.order('stop')
  await eventful.waitForEnd()

  return [
    single(figures.history_events_per_report, eventsPerReport),
    single(figures.history_events_plain, await plain.historyEvents()),
    single(figures.history_events_eventful, await eventful.historyEvents()),
  ]
}

/** A session that is taken through its states. */
class Life {
  private constructor(
    private readonly stack: Stack,
    private readonly workflows: RelaySessionWorkflows,
    readonly sessionId: string,
  ) {}

  static async begin(
    stack: Stack,
    workflows: RelaySessionWorkflows,
    user: BenchUser | undefined,
    connectionId: string,
  ) {
    if (!user) throw new Error('there is no user')
    const session = await reserve(stack, user, connectionId)
    await workflows.deliver({ ...session, commandDeliveredSeq: 0 })
    return new Life(stack, workflows, session.id)
  }

  async becomeActive(): Promise<void> {
    await this.#untilRow((row) => row.instanceId !== null)
    await this.#report()
    await this.workflows.ready(this.sessionId)
    await this.#untilRow((row) => row.state === 'active')
  }

  async loseAndRestoreHealth(): Promise<void> {
    await sleep(shortSeconds * 1200)
    await this.workflows.healthLost(this.sessionId)
    await this.#untilRow((row) => row.state === 'grace')
    await this.#report()
    await this.workflows.healthRestored(this.sessionId)
    await this.#untilRow((row) => row.state === 'active')
  }

  async order(command: 'run' | 'stop'): Promise<void> {
    const session = await recordCommand(this.stack.sql, this.sessionId, command, 'user')
    if (session) await this.workflows.deliver(session)
  }

  /** Resolves once the workflow has ended: the session is stopped and its instance destroyed. */
  async waitForEnd(): Promise<void> {
    await this.#handle().result()
  }

  /** The number of events once it does not grow any more. */
  async historyEvents(): Promise<number> {
    let seen = -1
    for (;;) {
      const { historyLength } = await this.#handle().describe()
      if (historyLength === seen) return seen
      seen = historyLength
      await sleep(500)
    }
  }

  #handle() {
    return this.stack.temporal.workflow.getHandle(messages.relaySessionWorkflowId(this.sessionId))
  }

  #report() {
    const { sessionId } = this
    const report = {
      sessionId,
      instanceId: fakeInstanceId(sessionId),
      binding: 1,
      isHeld: false,
      hasOwnSecret: false,
      isIdle: false,
      ingest: readIngest(undefined),
    }
    return recordReports(this.stack.sql, [report], shortSeconds)
  }

  #untilRow(isDone: (row: NonNullable<Awaited<ReturnType<typeof findRelaySession>>>) => boolean): Promise<void> {
    return waitUntil('the workflow has written the row', async () => {
      const row = await findRelaySession(this.stack.sql, this.sessionId)
      return row !== undefined && isDone(row)
    })
  }
}
