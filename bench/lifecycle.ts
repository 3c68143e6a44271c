/** The history events of a relay session workflow: per steady health report, and for a short and an eventful session. */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordCommand } from '../db/relay-commands.ts'
import { recordReports } from '../db/relay-health.ts'
import { findRelaySession } from '../db/relay-sessions.ts'
import * as messages from '../workflows/messages.ts'
import { createRelaySessionWorkflows, type RelaySessionWorkflows } from '../workflows/relay-session-client.ts'
import { type Machine, say, until } from './machine.ts'
import { absolute, type Row } from './pairs.ts'
import { type BenchUser, paperInstance } from './rows.ts'
import { report, reserve, type WorkflowBench } from './workflows.ts'

const steadyReports = 1000
const eventsMax = 40
const shortSeconds = 1

export async function measureLifecycle({ machine, api, rows }: WorkflowBench): Promise<Row[]> {
  const settings = { ...api.config.relay, healthTimeoutSeconds: shortSeconds, stopGraceSeconds: shortSeconds }
  const { taskQueue } = api.config.temporal
  const workflows = createRelaySessionWorkflows(machine.temporal, { taskQueue, settings, callMillisMax: 10_000 })
  const lifeOf = async (connectionId: string) => Life.begin(machine, workflows, rows.users[0], connectionId)

  say('one life: started, active, a thousand reports, stopped')
  const plain = await lifeOf('plain-life')
  await plain.becomeActive()
  const before = await plain.historyEvents()
  for (let sent = 0; sent < steadyReports; sent += 1) await report(api, plain.sessionId)
  const eventsPerReport = ((await plain.historyEvents()) - before) / steadyReports
  await plain.order('stop')
  await plain.ends()

  say('another: silence, return, a stop that is taken back, silence, return, and the stop')
  const eventful = await lifeOf('eventful-life')
  await eventful.becomeActive()
  await eventful.fallSilentAndReturn()
  await eventful.order('stop')
  await eventful.order('run')
  await eventful.fallSilentAndReturn()
  await eventful.order('stop')
  await eventful.ends()

  return [
    absolute(`Temporal events per steady report (${steadyReports} reports)`, eventsPerReport, 'events', 0),
    absolute('history of a life: start, active, stop', await plain.historyEvents(), 'events', eventsMax),
    {
      what: 'the same with two silences and returns and a stop taken back',
      ...{ floor: '–', ours: `${await eventful.historyEvents()} events`, ratio: undefined, target: '–', met: true },
    },
  ]
}

/** One session, led through its states. */
class Life {
  private constructor(
    private readonly machine: Machine,
    private readonly workflows: RelaySessionWorkflows,
    readonly sessionId: string,
  ) {}

  static async begin(
    machine: Machine,
    workflows: RelaySessionWorkflows,
    user: BenchUser | undefined,
    connectionId: string,
  ) {
    if (!user) throw new Error('there is no user')
    const session = await reserve(machine, user, connectionId)
    await workflows.deliver({ ...session, commandDeliveredSeq: 0 })
    return new Life(machine, workflows, session.id)
  }

  async becomeActive(): Promise<void> {
    await this.#untilRow((row) => row.instanceId !== null)
    await this.#report()
    await this.workflows.ready(this.sessionId)
    await this.#untilRow((row) => row.state === 'active')
  }

  async fallSilentAndReturn(): Promise<void> {
    await sleep(shortSeconds * 1200)
    await this.workflows.healthLost(this.sessionId)
    await this.#untilRow((row) => row.state === 'grace')
    await this.#report()
    await this.workflows.healthRestored(this.sessionId)
    await this.#untilRow((row) => row.state === 'active')
  }

  async order(command: 'run' | 'stop'): Promise<void> {
    const session = await recordCommand(this.machine.sql, this.sessionId, command, 'user')
    if (session) await this.workflows.deliver(session)
  }

  /** Resolves once the workflow is over: the session is stopped and the provider has nothing left. */
  async ends(): Promise<void> {
    await this.#handle().result()
  }

  /** Once nothing is being added any more. */
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
    return this.machine.temporal.workflow.getHandle(messages.relaySessionWorkflowId(this.sessionId))
  }

  #report() {
    const { sessionId } = this
    return recordReports(this.machine.sql, [{ sessionId, instanceId: paperInstance(sessionId), isIdle: false }])
  }

  #untilRow(isSo: (row: NonNullable<Awaited<ReturnType<typeof findRelaySession>>>) => boolean): Promise<void> {
    return until('the workflow has written the row', async () => {
      const row = await findRelaySession(this.machine.sql, this.sessionId)
      return row !== undefined && isSo(row)
    })
  }
}
