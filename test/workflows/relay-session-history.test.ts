/** The history of relay sessions: its size, its secrets, and recorded ones that replay. */
import { beforeAll, describe, expect, test } from 'vitest'
import { recordCommand } from '../../db/relay/commands.ts'
import { maskEmail } from '../../domain/identity/masked-email.ts'
import * as messages from '../../workflows/messages.ts'
import { ConnectionAttribute } from '../../workflows/search-attributes.ts'
import { streamTokenOf } from '../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../support/fake-relays.ts'
import { findReplayFailures, readHistories } from '../support/histories.ts'
import { endGrace, makeSilent } from '../support/relay-jobs.ts'
import { eventually } from '../support/relays.ts'
import { startWithShortHistory } from '../support/short-history.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

let service: FakeRelayService
beforeAll(async () => {
  const names = ['local', 'silent']
  service = await startFakeRelayService({
    variables: {
      ...longRelayTimeouts,
      SVC_RELAY_STOP_GRACE_SECONDS: '600',
      SVC_REGIONS: JSON.stringify(names.map((region) => ({ region, display_name: region, provider: 'local' }))),
    },
  })
})

const handleOf = (sessionId: string) =>
  service.api.services.temporal.workflow.getHandle(messages.relaySessionWorkflowId(sessionId))
const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state
const untilState = (sessionId: string, state: string) =>
  eventually(
    () => stateOf(sessionId),
    (current) => current === state,
  )
const untilInstanceIsGone = (sessionId: string) =>
  eventually(
    () => service.relayProvider.list({ sessionId }),
    (instances) => instances.length === 0,
  )

async function activeRelay() {
  const user = await service.user()
  return { user, session: await service.startActiveRelay(user) }
}

const untilEnded = (sessionId: string) =>
  eventually(
    () => handleOf(sessionId).describe(),
    ({ status }) => status.name !== 'RUNNING',
  )

describe('the history of a relay session', () => {
  test('has at most 40 events for a complete session', async () => {
    const { user, session } = await activeRelay()
    await user.stop({ session_id: session.session_id })
    await endGrace(service.api, session.session_id)
    await untilEnded(session.session_id)
    const { events } = await handleOf(session.session_id).fetchHistory()
    const all = events ?? []
    // Without those of the wake that ended the grace early: they precede the end of the timer for that time.
    const wokenAt = all.findIndex(
      (event) => event.workflowExecutionSignaledEventAttributes?.signalName === messages.wake.name,
    )
    const endedAt = all.findIndex((event) => event.timerFiredEventAttributes)
    expect(wokenAt).toBeGreaterThan(0)
    expect(all.length - (endedAt - wokenAt)).toBeLessThanOrEqual(40)
  })

  test('contains no secret and no email address', async () => {
    const { user, session } = await activeRelay()
    await user.stop({ session_id: session.session_id, immediate: true })
    await untilEnded(session.session_id)
    const text = JSON.stringify(await handleOf(session.session_id).fetchHistory())
    const decoded = [...text.matchAll(/"data":"([A-Za-z0-9+/=]+)"/g)]
      .map(([, data = '']) => Buffer.from(data, 'base64').toString())
      .join('\n')
    expect(decoded).toContain(session.session_id)
    expect(decoded).toContain(maskEmail(user.email))
    expect(text + decoded).not.toContain(user.email)
    const streamToken = await streamTokenOf(service.api, user.userId)
    for (const secret of [session.pair_token, session.relay_ws_token, streamToken]) {
      expect(secret).toBeTruthy()
      expect(text + decoded).not.toContain(secret)
    }
  })

  test('has search attributes for state, region and user, and a summary', async () => {
    const { user, session } = await activeRelay()
    const { workflow } = service.api.services.temporal
    const query = `RelayState = 'active' AND Region = 'local' AND UserId = '${user.userId}'`
    const found = await eventually(
      async () => {
        const ids: string[] = []
        for await (const { workflowId } of workflow.list({ query })) ids.push(workflowId)
        return ids
      },
      (ids) => ids.length === 1,
    )
    expect(found).toEqual([messages.relaySessionWorkflowId(session.session_id)])
    expect(await (await handleOf(session.session_id).describe()).staticSummary()).toBe(
      'Relay in local for connection default',
    )
    const { typedSearchAttributes, ...described } = await handleOf(session.session_id).describe()
    expect(typedSearchAttributes.get(ConnectionAttribute)).toBe('default')
    expect(await described.staticDetails()).toBe(
      `- connection \`default\`\n- region \`local\`\n- account \`${user.userId}\`\n- address \`${maskEmail(user.email)}\``,
    )
    expect(await listTimers(session.session_id)).toEqual(['provisioning deadline', 'longest duration'])
    await user.stop({ session_id: session.session_id })
    expect(await listTimers(session.session_id)).toContain('grace after stop_requested ends')
  })

  test('continues as new when it grows long, with the same deadline', async () => {
    const user = await service.user()
    const sessionId = await startWithShortHistory(service.api, user)
    await eventually(
      () => service.history(sessionId),
      ({ session }) => session.instance_id !== null,
    )
    await service.sendReport(sessionId)
    await untilState(sessionId, 'active')
    const { firstExecutionRunId } = await firstRun(sessionId)
    await user.stop({ session_id: sessionId })
    const before = await handleOf(sessionId).query(messages.snapshot)
    // Signals without an effect fill the history until it continues as new during the grace.
    for (let index = 0; index < 4; index += 1) await handleOf(sessionId).signal(messages.healthRestored)
    const runs = await eventually(
      () => handleOf(sessionId).describe(),
      ({ runId }) => runId !== firstExecutionRunId,
    )
    expect(runs.status.name).toBe('RUNNING')
    const after = await handleOf(sessionId).query(messages.snapshot)
    expect(after).toEqual(before)
    expect(runs.typedSearchAttributes.getAll().find(({ key }) => key.name === 'RelayState')?.value).toBe('grace')
    await endGrace(service.api, sessionId)
    await untilState(sessionId, 'stopped')
    await untilInstanceIsGone(sessionId)
  })
})

describe('a workflow', () => {
  test('that is cancelled in the Temporal UI ends its session and its relay', async () => {
    const { session } = await activeRelay()
    await handleOf(session.session_id).cancel()
    await untilState(session.session_id, 'stopped')
    expect((await service.history(session.session_id)).session.reason).toBe('force_disconnected')
    await untilInstanceIsGone(session.session_id)
  })

  test('that is cancelled while a stop is being delivered leaves no undelivered command', async () => {
    const { user, session } = await activeRelay()
    const { sql, services } = service.api
    const stop = await recordCommand(sql, session.session_id, 'stop', 'user')
    if (!stop) throw new Error('the session is live')
    await Promise.all([services.relaySessions.deliver(stop), handleOf(session.session_id).cancel()])
    await untilState(session.session_id, 'stopped')
    // The same update again, as the job sends it.
    await services.relaySessions.deliver({ ...stop, commandDeliveredSeq: 1 })
    const [row] = await sql`
      select command_seq, command_delivered_seq from relay_sessions where id = ${session.session_id}`
    expect(row?.commandDeliveredSeq).toBe(row?.commandSeq)
    expect((await user.active()).sessions).toEqual([])
  })

  test('that is terminated is restarted and keeps the relay', async () => {
    const { user, session } = await activeRelay()
    await handleOf(session.session_id).terminate('test')
    // Old enough for the job, since Temporal's list is delayed.
    await service.api.sql`
      update relay_sessions set created_at = created_at - interval '1 minute' where id = ${session.session_id}`
    await eventually(
      async () => {
        await service.runJob('restart_workflows')
        return handleOf(session.session_id).describe()
      },
      ({ status }) => status.name === 'RUNNING',
    )
    expect(await service.relayProvider.list({ sessionId: session.session_id })).toHaveLength(1)
    expect(await handleOf(session.session_id).query(messages.snapshot)).toMatchObject({ state: 'active', version: 1 })
    const { body } = await user.stop({ session_id: session.session_id, immediate: true })
    expect(body.session.state).toBe('stopped')
    await untilInstanceIsGone(session.session_id)
  })

  test('executes the command that was accepted last, however late an earlier one arrives', async () => {
    const { session } = await activeRelay()
    const { sql, services } = service.api
    const stop = await recordCommand(sql, session.session_id, 'stop_now', 'user')
    const run = await recordCommand(sql, session.session_id, 'run', 'user')
    if (!stop || !run) throw new Error('the session is live')
    await services.relaySessions.deliver({ ...run, commandDeliveredSeq: 1 })
    await services.relaySessions.deliver({ ...stop, commandDeliveredSeq: 1 })
    expect(await stateOf(session.session_id)).toBe('active')
  })

  test('that receives an older command first checks for newer ones', async () => {
    const { session } = await activeRelay()
    const { sql, services } = service.api
    const stop = await recordCommand(sql, session.session_id, 'stop_now', 'user')
    await recordCommand(sql, session.session_id, 'run', 'user')
    if (!stop) throw new Error('the session is live')
    await services.relaySessions.deliver({ ...stop, commandDeliveredSeq: 1 })
    expect(await stateOf(session.session_id)).toBe('active')
  })
})

describe('when most relays of a region fall silent together', () => {
  test('no relay is stopped, until most of them report again', async () => {
    const users = await Promise.all(Array.from({ length: 6 }, () => service.user()))
    const sessions = await Promise.all(users.map((user) => service.startActiveRelay(user, { region: 'silent' })))
    const sessionIds = sessions.map(({ session_id }) => session_id)
    const readStates = () => Promise.all(sessionIds.map(stateOf))
    await makeSilent(service.api, sessionIds)
    await service.runJob('watch_health')
    expect(await readStates()).toEqual(Array(6).fill('active'))
    for (const sessionId of sessionIds.slice(1)) await service.sendReport(sessionId)
    const states = await eventually(
      async () => {
        await service.runJob('watch_health')
        return readStates()
      },
      ([first]) => first !== 'active',
    )
    expect(states).toEqual(['grace', ...Array(5).fill('active')])
  })
})

describe('recorded histories of relay session workflows', async () => {
  const recorded = await readHistories('./')

  test('cover each course that a session can take', () => {
    expect([...recorded.keys()]).toEqual([
      'cancelled-by-operator',
      'continued-as-new',
      'health-lost-and-restored',
      'health-lost-for-good',
      'provision-failed',
      'provision-timeout',
      'restarted',
      'started-and-stopped',
      'started-on-a-warm-instance',
      'stopped-at-once',
      'stopped-while-provisioning',
      'taken-back-from-stop',
    ])
  })

  test('replay against the current code', async () => {
    expect(await findReplayFailures(recorded, messages.relaySessionWorkflowId)).toEqual([])
  })

  test('fail to replay when the workflow schedules another activity', async () => {
    const name = 'started-and-stopped'
    const altered = recorded.get(name)?.replaceAll('destroyInstances', 'anotherActivity') ?? ''
    expect(await findReplayFailures(new Map([[name, altered]]), messages.relaySessionWorkflowId)).toEqual([name])
  })
})

/** The summaries of the timers, in order. */
async function listTimers(sessionId: string): Promise<string[]> {
  const { events } = await handleOf(sessionId).fetchHistory()
  return (events ?? [])
    .filter((event) => event.timerStartedEventAttributes)
    .map((event) => JSON.parse(Buffer.from(event.userMetadata?.summary?.data ?? []).toString()) as string)
}

async function firstRun(sessionId: string): Promise<{ firstExecutionRunId: string }> {
  const { runId } = await handleOf(sessionId).describe()
  return { firstExecutionRunId: runId }
}
