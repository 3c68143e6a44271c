import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { endLocalRelays } from '../../platform/local-relays.ts'
import { Client, createDatabase, type GivenUser, signUp } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { testEnvironment } from '../support/environment.ts'
import { type Program, type ProgramName, startProgram, untilWell } from '../support/programs.ts'
import {
  eventually,
  freePort,
  type OneSession,
  operator,
  operatorPassword,
  relayProcesses,
  shortTimes,
} from '../support/relays.ts'

/** The number of concurrent sessions, each a few milliseconds ahead of the next. */
const sessionsUnderWay = 8
const apartMillis = 45

let dataDir: string
let api: Client
let sql: Database
let users: GivenUser[]
const programs = {} as Record<ProgramName, Program>

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'relay-crash-'))
  const database = await createDatabase()
  const port = await freePort()
  const env = testEnvironment({
    ...shortTimes,
    SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '30',
    PORT: String(port),
    DATABASE_URL: database.url,
    SVC_DATA_DIR: dataDir,
    SVC_OPERATOR_PASSWORD: operatorPassword,
    SVC_TEMPORAL_TASK_QUEUE: `test-${randomUUID()}`,
  })
  sql = connectPostgres(database.url, 3)
  atEnd(async () => {
    await endLocalRelays(dataDir)
    rmSync(dataDir, { recursive: true, force: true })
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  programs.api = startProgram('api', env)
  programs.worker = startProgram('worker', env)
  api = new Client(`http://127.0.0.1:${port}`)
  await untilWell(api.url)
  users = await Promise.all(Array.from({ length: sessionsUnderWay }, () => signUp(api)))
  for (const { userId } of users)
    await api.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
}, 90_000)

/** Repeats the same request until it is answered, as a plugin does. */
const persistently = (path: string, body: object, user: GivenUser, key = randomUUID()) =>
  eventually(
    () =>
      api
        .post<OneSession>(path, body, { bearer: user.bearer, headers: { 'Idempotency-Key': key } })
        .catch(() => undefined),
    (answer) => answer !== undefined && answer.status < 500,
    60,
  ).then((answer) => answer?.body.session as OneSession['session'])

/** Sends one request per user at short intervals, and kills the victims while the requests are in progress. */
async function killDuring(victims: readonly ProgramName[], ask: (user: GivenUser) => Promise<OneSession['session']>) {
  const requests = users.map(async (user, index) => {
    await sleep(index * apartMillis)
    return ask(user)
  })
  await sleep(sessionsUnderWay * apartMillis + 20)
  await Promise.all(victims.map((name) => programs[name].kill()))
  for (const name of victims) programs[name].start()
  return Promise.all(requests)
}

const states = async () =>
  (
    await sql<
      { id: string; state: string }[]
    >`select id, state from relay_sessions order by created_at desc limit ${sessionsUnderWay}`
  ).map((row) => row.state)

describe.each<{ victims: ProgramName[] }>([
  { victims: ['api'] },
  { victims: ['worker'] },
  { victims: ['api', 'worker'] },
])('when $victims is killed at any point', ({ victims }) => {
  test('each accepted start becomes active on one relay, and each accepted stop leaves none', async () => {
    const sessions = await killDuring(victims, (user) => persistently('/relay/start', {}, user))
    expect(new Set(sessions.map((session) => session.session_id)).size).toBe(sessionsUnderWay)
    await eventually(states, (all) => all.every((state) => state === 'active'), 60)
    const running = relayProcesses(dataDir).map((relay) => relay.sessionId)
    expect(running.sort()).toEqual(sessions.map((session) => session.session_id).sort())

    await killDuring(victims, (user) =>
      persistently('/relay/stop', { connection_id: 'default', immediate: true }, user),
    )
    await eventually(states, (all) => all.every((state) => state === 'stopped'), 60)
    await eventually(
      () => relayProcesses(dataDir),
      (all) => all.length === 0,
      60,
    )
    const transitions = await sql`
        select session_id, count(*) from relay_transitions where session_id = any(${sessions.map((one) => one.session_id)}::uuid[])
        group by session_id having count(*) <> 3`
    expect(transitions).toHaveLength(0)
  }, 150_000)
})
