/** Sessions whose relay is lost: another one takes over, unless the lost one comes back or the session ends. */
import { describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { fakeInstanceId } from '../support/fake-relay-provider.ts'
import { startFakeRelayService } from '../support/fake-relays.ts'
import { connectSocket } from '../support/relay-sockets.ts'
import { eventually, freeze, operator, type RelayUser, relayProcesses, startService } from '../support/relays.ts'
import { longRelayTimeouts } from '../support/subscribers.ts'

const replacing = { SVC_RELAY_REPLACEMENT_SECONDS: '60' }
const [real, fake] = await Promise.all([
  startService({ variables: { ...replacing, SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '4', SVC_RELAY_GRACE_SECONDS: '30' } }),
  startFakeRelayService({
    variables: {
      ...longRelayTimeouts,
      ...replacing,
      SVC_REGIONS: JSON.stringify(
        ['local', 'other'].map((region) => ({ region, display_name: region, provider: 'local', capacity: 50 })),
      ),
    },
  }),
])

const replaced = (user: RelayUser, { connection_id: connectionId, instance_id: lost }: SessionView) =>
  eventually(
    async () => (await user.active(connectionId)).session as SessionView,
    (session) => session.state === 'active' && session.instance_id !== lost,
  )

const transitionsOf = async (service: Pick<typeof real, 'history'>, sessionId: string) =>
  (await service.history(sessionId)).transitions.map(({ from, to, reason }) => `${from} → ${to} (${reason})`)

describe('a relay on this machine', () => {
  test('that is killed is replaced in the same session, at the same ports', async () => {
    const { user, session } = await real.activeRelay()
    for (const pid of real.relaysOf(session.session_id)) process.kill(pid, 'SIGKILL')
    const after = await replaced(user, session)

    const { srtla_url, srt_url, player_url, stats_url } = session.connect ?? {}
    expect(after).toMatchObject({
      session_id: session.session_id,
      reason: 'health_restored',
      detail: 'relay_replaced',
      connect: { srtla_url, srt_url, player_url, stats_url },
    })
    expect(await transitionsOf(real, session.session_id)).toEqual([
      'provisioning → active (relay_ready)',
      'active → grace (health_lost)',
      'grace → active (health_restored)',
    ])
    expect(real.relaysOf(session.session_id)).toHaveLength(1)
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => real.relaysOf(session.session_id),
      (pids) => pids.length === 0,
    )
  })

  test('that hangs is ended and replaced after the health timeout', async () => {
    const { user, session } = await real.activeRelay()
    const [pid = 0] = real.relaysOf(session.session_id)
    freeze(pid)
    const after = await replaced(user, session)
    expect(after.connect?.srtla_url).toBe(session.connect?.srtla_url)
    expect(relayProcesses(real.dataDir).map((relay) => relay.pid)).not.toContain(pid)
    expect(await real.api.sql`select cause from relay_replacements where session_id = ${session.session_id}`).toEqual([
      { cause: 'relay_silent' },
    ])
    await user.stop({ session_id: session.session_id, immediate: true })
  })

  test('has the same ports in the next session of its connection', async () => {
    const { user, session } = await real.activeRelay()
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => real.relaysOf(session.session_id),
      (pids) => pids.length === 0,
    )
    const { session: next } = await real.activeRelay(user)
    expect(next.session_id).not.toBe(session.session_id)
    expect(next.connect?.srt_url).toBe(session.connect?.srt_url)
    await user.stop({ session_id: next.session_id, immediate: true })
  })
})

const { sql } = fake.api
const fakeRegion = 'local'

async function startActive(body = {}) {
  const user = await fake.user()
  const { session_id: sessionId } = await fake.startActiveRelay(user, body)
  return { user, sessionId }
}

const sessionOf = async (sessionId: string) =>
  (await fake.history(sessionId)).session as SessionView & { readonly detail: string | null }

const until = (sessionId: string, isWanted: (session: Awaited<ReturnType<typeof sessionOf>>) => boolean) =>
  eventually(() => sessionOf(sessionId), isWanted)

/** As if the worker had proved that the bound instance is gone. */
async function proveGone(sessionId: string): Promise<void> {
  const { instance_id: instanceId } = await sessionOf(sessionId)
  await sql`update relay_health set gone_at = now() where session_id = ${sessionId}`
  await fake.api.services.relaySessions.relayGone(sessionId, instanceId ?? '')
}

/** Resolves with the instance that is to take over. */
const untilCreated = async (sessionId: string): Promise<string> => {
  const [row] = await eventually(
    () => sql<{ instanceId: string }[]>`
      select i.instance_id from instances i join relay_sessions s on s.id = i.session_id
      where s.id = ${sessionId} and i.binding > s.binding and i.launched_at is not null
        and i.retired_at is null and i.gone_at is null`,
    (rows) => rows.length > 0,
  )
  return row?.instanceId ?? ''
}

async function replace(sessionId: string): Promise<string> {
  await proveGone(sessionId)
  const instanceId = await untilCreated(sessionId)
  expect((await fake.sendReport(sessionId, { instance_id: instanceId })).status).toBe(200)
  await until(sessionId, ({ state, instance_id }) => state === 'active' && instance_id === instanceId)
  return instanceId
}

describe('a relay that is proved to be gone', () => {
  test('leads to the grace at once, and its session is active again with the first report of another one', async () => {
    const { user, sessionId } = await startActive()
    await fake.sendReport(sessionId)
    await proveGone(sessionId)
    const instanceId = await untilCreated(sessionId)
    expect(await sessionOf(sessionId)).toMatchObject({
      state: 'grace',
      reason: 'health_lost',
      detail: 'relay_gone',
      instance_id: fakeInstanceId(sessionId),
    })
    await fake.sendReport(sessionId, { instance_id: instanceId })
    const after = await until(sessionId, ({ state }) => state === 'active')
    expect(after).toMatchObject({ reason: 'health_restored', detail: 'relay_replaced', instance_id: instanceId })
    const { body } = await fake.api.get<{ replacements: { cause: string; away_seconds: number }[] }>(
      `/relay/sessions/${sessionId}`,
      { bearer: user.bearer },
    )
    expect(body.replacements).toEqual([
      { at: expect.any(String), away_seconds: expect.any(Number), cause: 'relay_gone' },
    ])
    // No second between the last report of one relay and the first of the other counts.
    const [usage, ...rest] = await sql<{ startedAt: Date; endedAt: Date | null }[]>`
      select started_at, ended_at from usage_intervals where session_id = ${sessionId} order by started_at`
    expect(rest).toEqual([{ startedAt: expect.any(Date), endedAt: null }])
    const [replacement] = await sql`select last_report_at from relay_replacements where session_id = ${sessionId}`
    expect(usage?.endedAt).toEqual(replacement?.lastReportAt)
  })

  test('is announced to those who watch the session, with each change', async () => {
    const { user, sessionId } = await startActive()
    const token = (await user.active()).sessions.find(({ session_id }) => session_id === sessionId)?.relay_ws_token
    const watcher = await connectSocket(fake.api.url, { token })
    await replace(sessionId)
    await watcher.message(({ session }) => session.detail === 'relay_gone')
    await watcher.message(({ session }) => session.detail === 'relay_replaced' && session.state === 'active')
    expect(watcher.states().filter((state, index, all) => state !== all[index - 1])).toEqual([
      'active',
      'grace',
      'active',
    ])
  })

  test('is answered that another one has taken over, and is destroyed', async () => {
    const { sessionId } = await startActive()
    const instanceId = await replace(sessionId)
    expect(await fake.sendReport(sessionId)).toMatchObject({ status: 409, body: { error: { code: 'relay_replaced' } } })
    expect((await fake.sendReport(sessionId, { instance_id: instanceId, binding: 2 })).status).toBe(200)
    await fake.runJob('sweep_orphans')
    expect(await fake.relayProvider.describe(fakeInstanceId(sessionId))).toBeNull()
    expect(await fake.relayProvider.describe(instanceId)).not.toBeNull()
  })

  test('is destroyed soon after another one has taken over, also without a report of its own', async () => {
    const { sessionId } = await startActive()
    await replace(sessionId)
    await eventually(
      () => fake.relayProvider.describe(fakeInstanceId(sessionId)),
      (instance) => instance === null,
    )
  })

  test('is not lost by a proof that a report has refuted', async () => {
    const { sessionId } = await startActive()
    await sql`update relay_health set gone_at = now() where session_id = ${sessionId}`
    await fake.sendReport(sessionId)
    await fake.api.services.relaySessions.relayGone(sessionId, fakeInstanceId(sessionId))
    await fake.api.services.relaySessions.wake(sessionId)
    expect(await transitionsOf(fake, sessionId)).toEqual(['provisioning → active (relay_ready)'])
  })
})

describe('while a lost relay is replaced', () => {
  test('a start answers with its session', async () => {
    const { user, sessionId } = await startActive()
    await proveGone(sessionId)
    await untilCreated(sessionId)
    const answer = await user.start()
    expect([answer.status, answer.body.session.session_id, answer.body.session.state]).toEqual([
      200,
      sessionId,
      'grace',
    ])
  })

  test.each([
    ['a stop', (user: RelayUser, id: string) => user.stop({ session_id: id, immediate: true }), 'stop_requested'],
    [
      'a disconnect by an operator',
      (_: RelayUser, id: string) =>
        fake.api.post(`/admin/sessions/${id}/disconnect`, { reason: 'test' }, { headers: operator }),
      'force_disconnected',
    ],
  ])('%s ends the session and leaves no instance', async (_, end, reason) => {
    const { user, sessionId } = await startActive()
    await proveGone(sessionId)
    const instanceId = await untilCreated(sessionId)
    await end(user, sessionId)
    await until(sessionId, ({ state }) => state === 'stopped')
    expect((await transitionsOf(fake, sessionId)).at(-1)).toBe(`grace → stopped (${reason})`)
    expect((await fake.sendReport(sessionId, { instance_id: instanceId })).status).toBe(409)
    await eventually(
      () => sql`select from instances where session_id = ${sessionId} and gone_at is null`,
      (rows) => rows.length === 0,
    )
    expect(await fake.relayProvider.list({ sessionId })).toEqual([])
  })

  test('a report of the lost one makes the session active again, and the other one is destroyed', async () => {
    const { sessionId } = await startActive()
    await proveGone(sessionId)
    const instanceId = await untilCreated(sessionId)
    await fake.sendReport(sessionId)
    const after = await until(sessionId, ({ state }) => state === 'active')
    expect(after).toMatchObject({ instance_id: fakeInstanceId(sessionId), reason: 'health_restored', detail: null })
    expect(await fake.sendReport(sessionId, { instance_id: instanceId, binding: 2 })).toMatchObject({
      status: 409,
      body: { error: { code: 'instance_mismatch' } },
    })
    await fake.runJob('sweep_orphans')
    expect(await fake.relayProvider.describe(instanceId)).toBeNull()
    expect(await sql`select from relay_replacements where session_id = ${sessionId}`).toHaveLength(0)
  })

  test('one that never reports is replaced too', async () => {
    const { sessionId } = await startActive()
    await proveGone(sessionId)
    const first = await untilCreated(sessionId)
    const second = await eventually(
      async () => {
        // As the job repeats it: the workflow may not know of its creation yet.
        await fake.api.services.relaySessions.instanceGone(sessionId, first)
        return untilCreated(sessionId)
      },
      (id) => id !== first,
    )
    expect((await fake.sendReport(sessionId, { instance_id: first })).status).toBe(409)
    await fake.sendReport(sessionId, { instance_id: second })
    expect(await until(sessionId, ({ state }) => state === 'active')).toMatchObject({ instance_id: second })
  })

  test('a drained region gets no other relay until it is resumed, and a start then begins at once', async () => {
    const { user, sessionId } = await startActive()
    await sql`insert into regions (region, drained_at) values (${fakeRegion}, now()) on conflict (region) do update set drained_at = now()`
    try {
      await proveGone(sessionId)
      await until(sessionId, ({ state }) => state === 'grace')
    } finally {
      await sql`update regions set drained_at = null`
    }
    expect((await user.start()).body.session.session_id).toBe(sessionId)
    await untilCreated(sessionId)
  })

  test('a session that was started wherever there is room moves to another region', async () => {
    const { sessionId } = await startActive({ region: 'auto' })
    const { region: home } = await sessionOf(sessionId)
    await sql`insert into regions (region, drained_at) values (${home}, now()) on conflict (region) do update set drained_at = now()`
    try {
      await replace(sessionId)
    } finally {
      await sql`update regions set drained_at = null`
    }
    expect((await sessionOf(sessionId)).region).not.toBe(home)
  })
})

test('a session that loses a fourth relay within an hour ends', async () => {
  const { sessionId } = await startActive()
  for (let count = 0; count < 3; count += 1) await replace(sessionId)
  await proveGone(sessionId)
  const ended = await until(sessionId, ({ state }) => state === 'stopped')
  expect(ended).toMatchObject({ reason: 'force_disconnected', detail: 'relay_unstable' })
  expect((await transitionsOf(fake, sessionId)).slice(-2)).toEqual([
    'active → grace (health_lost)',
    'grace → stopped (force_disconnected)',
  ])
})
