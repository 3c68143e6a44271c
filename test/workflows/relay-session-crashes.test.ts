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
const sessionCount = 8
const intervalMillis = 45

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
  users = await Promise.all(Array.from({ length: sessionCount }, () => signUp(api)))
  for (const { userId } of users)
    await api.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid' }, { headers: operator })
})

/** Repeats the same request until it is answered, as a plugin does. */
const postUntilAnswered = (path: string, body: object, user: GivenUser, key = randomUUID()) =>
  eventually(
    () =>
      api
        .post<OneSession>(path, body, { bearer: user.bearer, headers: { 'Idempotency-Key': key } })
        .catch(() => undefined),
    (response) => response !== undefined && response.status < 500,
  ).then((response) => response?.body.session as OneSession['session'])

/** Sends one request per user at short intervals, and kills the programs while the requests are in progress. */
async function killDuring(
  killedPrograms: readonly ProgramName[],
  send: (user: GivenUser) => Promise<OneSession['session']>,
) {
  const requests = users.map(async (user, index) => {
    await sleep(index * intervalMillis)
    return send(user)
  })
  await sleep(sessionCount * intervalMillis + 20)
  await Promise.all(killedPrograms.map((name) => programs[name].kill()))
  for (const name of killedPrograms) programs[name].start()
  return Promise.all(requests)
}

const listStates = async () =>
  (
    await sql<
      { id: string; state: string }[]
    >`select id, state from relay_sessions order by created_at desc limit ${sessionCount}`
  ).map((row) => row.state)

describe.each<{ killedPrograms: ProgramName[] }>([
  { killedPrograms: ['api'] },
  { killedPrograms: ['worker'] },
  { killedPrograms: ['api', 'worker'] },
])('when $killedPrograms is killed at any point', ({ killedPrograms }) => {
  test('each accepted start becomes active on one relay, and each accepted stop leaves none', async () => {
    const sessions = await killDuring(killedPrograms, (user) => postUntilAnswered('/relay/start', {}, user))
    expect(new Set(sessions.map((session) => session.session_id)).size).toBe(sessionCount)
    await eventually(listStates, (states) => states.every((state) => state === 'active'))
    const running = relayProcesses(dataDir).map((relay) => relay.sessionId)
    expect(running.sort()).toEqual(sessions.map((session) => session.session_id).sort())

    await killDuring(killedPrograms, (user) =>
      postUntilAnswered('/relay/stop', { connection_id: 'default', immediate: true }, user),
    )
    await eventually(listStates, (states) => states.every((state) => state === 'stopped'))
    await eventually(
      () => relayProcesses(dataDir),
      (relays) => relays.length === 0,
    )
    const sessionsWithOtherTransitions = await sql`
        select session_id, count(*) from relay_transitions where session_id = any(${sessions.map(({ session_id }) => session_id)}::uuid[])
        group by session_id having count(*) <> 3`
    expect(sessionsWithOtherTransitions).toHaveLength(0)
  })
})
