/** The job that delivers commands to workflows that did not get them. */
import { beforeAll, describe, expect, test } from 'vitest'
import { relaySessionJobs } from '../../../activities/relay/session-jobs.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { disconnectAll, markCommandsDelivered, recordCommand } from '../../../db/relay/commands.ts'
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
function createDeliveryJob(isUnreachable: (session: RelaySessionAddress) => boolean) {
  const attemptedIds: string[] = []
  const deliver: RelaySessionWorkflows['deliver'] = async (session) => {
    attemptedIds.push(session.id)
    if (isUnreachable(session)) throw new Error('unreachable')
    return true
  }
  const { config, sql, log } = api.services
  const relaySessions = { ...api.services.relaySessions, deliver }
  const [job] = relaySessionJobs({ config, sql, log, relaySessions, providers: new Map() })
  if (job?.name !== 'deliver_commands') throw new Error('the first job delivers commands')
  return { attemptedIds, run: () => job.run() }
}

const countUndelivered = async (ids: readonly string[]) =>
  (
    await api.sql`
      select from relay_sessions where id = any(${ids as string[]}::uuid[]) and command_delivered_seq < command_seq`
  ).count

describe('deliver_commands', () => {
  test('delivers to a session behind many others whose workflows do not answer', async () => {
    const unreachable = await insertSessions(520)
    const [reachable = ''] = await insertSessions(1)
    await api.sql`update relay_sessions set deliver_at = now() - interval '1 second' where id = ${reachable}`
    const { run } = createDeliveryJob(({ id }) => id !== reachable)
    await run()
    await run()
    expect(await countUndelivered([reachable])).toBe(0)
    expect(await countUndelivered(unreachable)).toBe(520)
    await api.sql`update relay_sessions set command_delivered_seq = command_seq where id = any(${unreachable}::uuid[])`
  })

  test('retries with backoff, which a new command resets', async () => {
    const [id = ''] = await insertSessions(1)
    const { attemptedIds, run } = createDeliveryJob(() => true)
    const backoffSeconds: number[] = []
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await api.sql`update relay_sessions set deliver_at = now() where id = ${id}`
      await run()
      await run()
      const [row] =
        await api.sql`select extract(epoch from deliver_at - now())::float8 as seconds from relay_sessions where id = ${id}`
      backoffSeconds.push(Math.round(row?.seconds))
    }
    expect(attemptedIds).toHaveLength(5)
    expect(backoffSeconds).toEqual([3, 6, 12, 24, 48])
    await recordCommand(api.sql, id, 'stop', 'user')
    const [row] =
      await api.sql`select extract(epoch from deliver_at - now())::float8 as seconds from relay_sessions where id = ${id}`
    expect(Math.round(row?.seconds)).toBe(3)
  })

  test('delivers nothing to a stopped session', async () => {
    const [id = ''] = await insertSessions(1)
    await api.sql`update relay_sessions set state = 'stopped', reason = 'provision_failed', stopped_at = now() where id = ${id}`
    const { attemptedIds, run } = createDeliveryJob(() => true)
    await run()
    expect(attemptedIds).not.toContain(id)
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
  const deliveredCommands = ids.map((id) => ({ id, seq: 1 }))
  const statements = Array.from({ length: 60 }, (_, index) => {
    const shuffled = deliveredCommands.toSorted(() => Math.random() - 0.5)
    return index % 3 === 0
      ? sql.begin(async (tx) => {
          await disconnectAll(tx, userId, 'system')
          await tx`update relay_sessions set command = 'run' where user_id = ${userId}`
        })
      : markCommandsDelivered(sql, shuffled)
  })
  await expect(Promise.all(statements)).resolves.toBeDefined()
})
