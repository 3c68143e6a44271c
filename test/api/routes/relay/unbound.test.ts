/** Relays that report without a session, and wait for one. */
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createInstanceId, instanceSecret } from '../../../../providers/relay/instance-secrets.ts'
import { type Answer, statusAndCode, streamTokenOf } from '../../../support/api.ts'
import { writeActive, writeCommand, writeStopped } from '../../../support/relay-rows.ts'
import { eventually, startService } from '../../../support/relays.ts'
import {
  assignInstance,
  insertWarmInstance,
  reportUnbound,
  type UnboundReply,
  untilReported,
} from '../../../support/unbound-relays.ts'

const [master, previousMaster] = [randomBytes(48).toString('base64'), randomBytes(48).toString('base64')]
const healthIntervalSeconds = 7
/** Without a worker, so that sessions keep their states. */
const { api, user: createUser } = await startService({
  worker: false,
  variables: {
    SVC_RELAY_AUTH_SECRET: `${master},${previousMaster}`,
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: String(healthIntervalSeconds),
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
  },
})
const { sql } = api

const report = (instanceId: string, waitSeconds?: unknown, secret = instanceSecret(master, instanceId)) =>
  reportUnbound(api, secret, { instance_id: instanceId, wait_seconds: waitSeconds })
const reportBound = (sessionId: string, instanceId: string, secret = instanceSecret(master, instanceId)) =>
  reportUnbound(api, secret, { session_id: sessionId, instance_id: instanceId })

async function startSession() {
  const user = await createUser()
  const { session } = (await user.start()).body
  return { sessionId: session.session_id, streamToken: await streamTokenOf(api, user.userId), user }
}

async function assignedInstance() {
  const [instanceId, session] = [await insertWarmInstance(sql), await startSession()]
  await assignInstance(sql, instanceId, session.sessionId)
  return { instanceId, ...session }
}

const secondsOf = async <Value>(work: Promise<Value>): Promise<[number, Value]> => {
  const startedAt = performance.now()
  const value = await work
  return [(performance.now() - startedAt) / 1000, value]
}

const nothingYet = { state: null, desired: 'run', assignment: null }
const assignmentOf = (answer: Answer<UnboundReply>) => answer.body.assignment

const isSweepDue = async () => {
  const [job] = await sql`select due_at <= now() + interval '1 minute' as due from jobs where name = 'sweep_orphans'`
  return job?.due
}
const postponeSweep = () => sql`
  insert into jobs (name, due_at) values ('sweep_orphans', now() + interval '1 hour')
  on conflict (name) do update set due_at = excluded.due_at`

describe('the report of a relay without a session', () => {
  test('waits, and is answered with the session and its stream token a moment after the assignment', async () => {
    const [instanceId, { sessionId, streamToken }] = [await insertWarmInstance(sql), await startSession()]
    const waiting = report(instanceId, 20)
    await untilReported(sql, instanceId)
    await assignInstance(sql, instanceId, sessionId)
    // At the end of its wait it would be answered without an assignment.
    const answer = await waiting
    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      state: 'provisioning',
      desired: 'run',
      report_in_seconds: 0.2,
      assignment: { session_id: sessionId, stream_token: streamToken, binding: 1 },
    })
    expect(answer.headers.get('cache-control')).toBe('no-store')
  })

  test('continues to wait when another instance gets its assignment', async () => {
    const [own, other] = [await insertWarmInstance(sql), await insertWarmInstance(sql)]
    const { sessionId } = await startSession()
    const [first, second] = [report(own, 20), report(other, 2)]
    await untilReported(sql, own, other)
    await assignInstance(sql, own, sessionId)
    expect(assignmentOf(await first)?.session_id).toBe(sessionId)
    expect((await second).body).toEqual({ ...nothingYet, report_in_seconds: 0.2 })
  })

  test('is answered after the time that it asked for, and the next report is due at once', async () => {
    const [seconds, answer] = await secondsOf(report(await insertWarmInstance(sql), 1))
    expect(answer.body).toEqual({ ...nothingYet, report_in_seconds: 0.2 })
    expect(seconds).toBeGreaterThan(0.95)
  })

  test.each([undefined, 0, -1, 'soon', null, {}])('is answered at once with wait_seconds %j', async (waitSeconds) => {
    const answer = await report(await insertWarmInstance(sql), waitSeconds)
    // One that waited would be answered that the next report is due at once.
    expect(answer.body).toEqual({ ...nothingYet, report_in_seconds: healthIntervalSeconds })
  })

  test('may have an empty session_id, and statistics, which are ignored', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    const stats = { publishing: true, bitrate_kbps: 4000 }
    const body = { session_id: '', instance_id: instanceId, stats }
    expect(assignmentOf(await reportUnbound(api, master, body))?.session_id).toBe(sessionId)
    expect(await sql`select from relay_health where session_id = ${sessionId}`).toHaveLength(0)
  })

  test('stores when it came, and that the instance exists', async () => {
    const instanceId = await insertWarmInstance(sql)
    await sql`update instances set gone_at = now() where instance_id = ${instanceId}`
    await report(instanceId)
    const [row] = await sql`
      select gone_at, last_report_at > now() - interval '10 seconds' as is_recent from instances
      where instance_id = ${instanceId}`
    expect(row).toEqual({ goneAt: null, isRecent: true })
  })

  test('gives the same assignment again, also while the session is active', async () => {
    const { instanceId, sessionId, streamToken } = await assignedInstance()
    const assignment = { session_id: sessionId, stream_token: streamToken, binding: 1 }
    for (const waitSeconds of [undefined, 10])
      expect(assignmentOf(await report(instanceId, waitSeconds))).toEqual(assignment)
    await writeActive(sql, sessionId)
    await sql`update relay_sessions set instance_id = ${instanceId} where id = ${sessionId}`
    expect((await report(instanceId)).body).toMatchObject({ state: 'active', desired: 'run', assignment })
  })

  test('gives a session to the instance that was created for it before it is bound', async () => {
    const { sessionId } = await startSession()
    const instanceId = await insertWarmInstance(sql, { sessionId, isWarm: false })
    expect(assignmentOf(await report(instanceId, 10))?.session_id).toBe(sessionId)
    expect((await reportBound(sessionId, instanceId)).body).toEqual({
      state: 'provisioning',
      desired: 'run',
      report_in_seconds: 1,
      epoch: expect.any(String),
    })
  })

  test('is answered with the interval when a newer one of its instance arrives', async () => {
    const [instanceId, { sessionId }] = [await insertWarmInstance(sql), await startSession()]
    const older = report(instanceId, 20)
    await untilReported(sql, instanceId)
    const newer = report(instanceId, 20)
    expect((await older).body).toEqual({ ...nothingYet, report_in_seconds: healthIntervalSeconds })
    await assignInstance(sql, instanceId, sessionId)
    expect(assignmentOf(await newer)?.session_id).toBe(sessionId)
  })

  test('does not count as a slow request', async () => {
    await report(await insertWarmInstance(sql), 3)
    const metrics = await (await fetch(`${api.url}/metrics`)).text()
    const labels = 'method="POST",route="/api/v1/relay/health"'
    const countOf = (bound: string) =>
      Number(
        new RegExp(`svc_http_request_duration_seconds_bucket\\{le="${bound}",${labels}} (\\d+)`).exec(metrics)?.[1],
      )
    expect(countOf('2.5')).toBeGreaterThan(0)
    expect(countOf('2.5')).toBe(countOf('\\+Inf'))
  })
})

describe('a relay without a session should stop', () => {
  const expectStop = async (instanceId: string) => {
    await postponeSweep()
    const { status, body } = await report(instanceId, 10)
    expect([status, body]).toMatchObject([200, { state: null, desired: 'stop', assignment: null }])
    expect(await isSweepDue()).toBe(true)
  }

  test('when its instance is retired, also while it waits', async () => {
    const instanceId = await insertWarmInstance(sql)
    const waiting = report(instanceId, 20)
    await untilReported(sql, instanceId)
    await sql`update instances set retired_at = now() where instance_id = ${instanceId}`
    // At the end of its wait it would be answered to run.
    expect((await waiting).body.desired).toBe('stop')
    await expectStop(instanceId)
  })

  test('when its session is stopped, and its instance becomes an orphan', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    await writeStopped(sql, sessionId)
    await expectStop(instanceId)
    const [row] =
      await sql`select unowned_since < now() - interval '50 seconds' as is_orphan from instances where instance_id = ${instanceId}`
    expect(row?.isOrphan).toBe(true)
  })

  test('when its session is disconnected', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    await writeCommand(sql, sessionId, 'disconnect')
    await expectStop(instanceId)
  })

  test('when its session was deleted', async () => {
    await expectStop(await insertWarmInstance(sql, { sessionId: randomUUID() }))
  })

  test('when its session has another instance', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    await sql`update relay_sessions set instance_id = 'another' where id = ${sessionId}`
    await expectStop(instanceId)
  })
})

describe('the secret of an instance', () => {
  test('is accepted if it is derived from the current or the previous master secret', async () => {
    const instanceId = await insertWarmInstance(sql)
    for (const secret of [master, previousMaster])
      expect((await report(instanceId, 0, instanceSecret(secret, instanceId))).status).toBe(200)
  })

  test('is refused if it is wrong or belongs to another instance', async () => {
    const [first, second] = [await insertWarmInstance(sql), await insertWarmInstance(sql)]
    const foreign = instanceSecret(randomBytes(48).toString('base64'), first)
    for (const secret of [foreign, instanceSecret(master, second), `${first}.`, ''])
      expect(statusAndCode(await report(first, 10, secret))).toEqual([401, 'invalid_relay_auth'])
    const { sessionId } = await assignedInstance()
    const bound = await reportBound(sessionId, first, instanceSecret(master, second))
    expect(statusAndCode(bound)).toEqual([401, 'invalid_relay_auth'])
    expect(bound.body).toMatchObject({ error: { message: 'The secret in X-Relay-Auth belongs to another instance.' } })
  })

  test('does not speak for a session of another instance, whether one is bound or not', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    const unbound = await startSession()
    const strangers = [
      instanceId,
      await insertWarmInstance(sql),
      await insertWarmInstance(sql, { sessionId: randomUUID() }),
      createInstanceId('aws'),
    ]
    for (const stranger of strangers)
      expect(statusAndCode(await reportBound(unbound.sessionId, stranger))).toEqual([409, 'instance_mismatch'])
    for (const stranger of strangers.slice(1))
      expect(statusAndCode(await reportBound(sessionId, stranger))).toEqual([409, 'instance_mismatch'])
    expect(await sql`select from relay_health where session_id in (${sessionId}, ${unbound.sessionId})`).toHaveLength(0)
  })

  test('does not speak for the session of its instance any more once that is retired', async () => {
    const { sessionId } = await startSession()
    const instanceId = await insertWarmInstance(sql, { sessionId })
    expect((await reportBound(sessionId, instanceId)).status).toBe(200)
    await sql`update instances set retired_at = now() where instance_id = ${instanceId}`
    expect(statusAndCode(await reportBound(sessionId, instanceId))).toEqual([409, 'instance_mismatch'])
  })

  test('speaks for the session that it was assigned to', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    expect((await reportBound(sessionId, instanceId)).body).toMatchObject({ state: 'provisioning', desired: 'run' })
    expect(await sql`select from relay_health where session_id = ${sessionId}`).toHaveLength(1)
  })
})

describe('a master secret', () => {
  test('speaks for instances without a row, while their session has no instance', async () => {
    const { sessionId } = await startSession()
    expect((await reportBound(sessionId, 'an-agent', master)).status).toBe(200)
    const { sessionId: other } = await assignedInstance()
    expect(statusAndCode(await reportBound(other, 'an-agent', master))).toEqual([409, 'instance_mismatch'])
  })

  test('gets the assignment of any instance', async () => {
    const { instanceId, sessionId } = await assignedInstance()
    expect(assignmentOf(await report(instanceId, 0, master))?.session_id).toBe(sessionId)
  })

  test('does not make an unknown instance known, and triggers the sweep of orphans', async () => {
    await postponeSweep()
    const instanceId = createInstanceId('aws')
    for (const secret of [master, instanceSecret(master, instanceId)])
      expect(statusAndCode(await report(instanceId, 10, secret))).toEqual([404, 'not_found'])
    expect(await isSweepDue()).toBe(true)
    expect(await sql`select from instances where instance_id = ${instanceId}`).toHaveLength(0)
  })
})

test('no log line of an assignment contains the stream token or a secret', async () => {
  const { instanceId, streamToken } = await assignedInstance()
  const secret = instanceSecret(master, instanceId)
  expect(assignmentOf(await report(instanceId))?.stream_token).toBe(streamToken)
  await reportUnbound(api, secret, { instance_id: `${instanceId}x` })
  const lines = await eventually(
    () => api.logged.join('\n'),
    (text) => text.includes('/relay/health'),
  )
  for (const text of [streamToken, secret, secret.split('.')[1] ?? '', master]) expect(lines.includes(text)).toBe(false)
})
