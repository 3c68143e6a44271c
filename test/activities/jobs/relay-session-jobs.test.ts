import { beforeAll, describe, expect, test } from 'vitest'
import { relaySessionJobs } from '../../../activities/jobs/relay-session-jobs.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { disconnectAll, markCommandsDelivered, recordCommand } from '../../../db/relay-commands.ts'
import type { RelaySessionAddress, RelaySessionWorkflows } from '../../../workflows/relay-session-client.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi()
})

const insertSessions = async (count: number): Promise<string[]> => {
  const { userId } = await api.given.user()
  const rows = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator, commanded_at, deliver_at)
    select ${userId}, 'c' || n, 'local', 'user', now() - interval '1 minute', now() - interval '1 minute'
    from generate_series(1, ${count}) n returning id`
  return rows.map(({ id }) => id)
}

/** Delivers commands through a Temporal client that fails for some sessions. */
function deliveries(isAway: (session: RelaySessionAddress) => boolean) {
  const tried: string[] = []
  const deliver: RelaySessionWorkflows['deliver'] = async (session) => {
    tried.push(session.id)
    if (isAway(session)) throw new Error('no answer')
    return true
  }
  const { config, sql, log } = api.services
  const relaySessions = { ...api.services.relaySessions, deliver }
  const [job] = relaySessionJobs({ config, sql, log, relaySessions, providers: new Map() })
  if (job?.name !== 'deliver_commands') throw new Error('the first job delivers commands')
  return { tried, round: () => job.run() }
}

const undelivered = async (ids: readonly string[]) =>
  (
    await api.sql`
      select from relay_sessions where id = any(${ids as string[]}::uuid[]) and command_delivered_seq < command_seq`
  ).count

describe('deliver_commands', () => {
  test('delivers to a session behind many others whose workflows do not answer', async () => {
    const stuck = await insertSessions(520)
    const [behind = ''] = await insertSessions(1)
    await api.sql`update relay_sessions set deliver_at = now() - interval '1 second' where id = ${behind}`
    const { round } = deliveries(({ id }) => id !== behind)
    await round()
    await round()
    expect(await undelivered([behind])).toBe(0)
    expect(await undelivered(stuck)).toBe(520)
    await api.sql`update relay_sessions set command_delivered_seq = command_seq where id = any(${stuck}::uuid[])`
  })

  test('retries with backoff, which a new command resets', async () => {
    const [id = ''] = await insertSessions(1)
    const { tried, round } = deliveries(() => true)
    const waits: number[] = []
    for (let tries = 0; tries < 5; tries += 1) {
      await api.sql`update relay_sessions set deliver_at = now() where id = ${id}`
      await round()
      await round()
      const [row] =
        await api.sql`select extract(epoch from deliver_at - now())::float8 as wait from relay_sessions where id = ${id}`
      waits.push(Math.round(row?.wait))
    }
    expect(tried).toHaveLength(5)
    expect(waits).toEqual([3, 6, 12, 24, 48])
    await recordCommand(api.sql, id, 'stop', 'user')
    const [row] =
      await api.sql`select extract(epoch from deliver_at - now())::float8 as wait from relay_sessions where id = ${id}`
    expect(Math.round(row?.wait)).toBe(3)
  })

  test('delivers nothing to a stopped session', async () => {
    const [id = ''] = await insertSessions(1)
    await api.sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${id}`
    const { tried, round } = deliveries(() => true)
    await round()
    expect(tried).not.toContain(id)
    const page = await (await fetch(`${api.url}/metrics`)).text()
    const [{ waiting } = {}] = await api.sql`
      select count(*)::int as waiting from relay_sessions where command_delivered_seq < command_seq and state <> 'stopped'`
    expect(page).toContain(`svc_relay_commands_undelivered ${waiting}`)
  })
})

test('concurrent statements that lock several sessions of an account do not deadlock', async () => {
  const ids = await insertSessions(40)
  const [{ userId } = {}] = await api.sql`select user_id from relay_sessions where id = ${ids[0] ?? ''}`
  const sql = connectPostgres(api.services.config.database.url, 8)
  atEnd(() => sql.end({ timeout: 5 }))
  const marks = ids.map((id) => ({ id, seq: 1 }))
  const rounds = Array.from({ length: 60 }, (_, round) => {
    const shuffled = marks.toSorted(() => Math.random() - 0.5)
    return round % 3 === 0
      ? sql.begin(async (tx) => {
          await disconnectAll(tx, userId, 'system')
          await tx`update relay_sessions set command = 'run' where user_id = ${userId}`
        })
      : markCommandsDelivered(sql, shuffled)
  })
  await expect(Promise.all(rounds)).resolves.toBeDefined()
})
