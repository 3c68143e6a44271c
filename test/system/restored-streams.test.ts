/**
 * A live stream outlives the database: the service is restored from a backup that is older than the session, with api
 * and worker as processes, local relays, and a stream of the SRT program of the protocol's authors.
 */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { relayFolderOf } from '../../providers/relay/local-relays.ts'
import { Client, type GivenUser, givePlan, signUp } from '../support/api.ts'
import { eventually, type OneSession, relayProcesses } from '../support/relays.ts'
import { type ReplacedServers, startReplacedServers } from '../support/replaced-servers.ts'
import { expectStreamGoesOn, StreamSink, StreamSource } from './srt-stream.ts'

const testMillisMax = 300_000
const secondsMax = 120

let servers: ReplacedServers
let api: Client
beforeAll(async () => {
  servers = await startReplacedServers({
    PATH: process.env.PATH ?? '',
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '1',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
  })
  api = new Client(servers.environment.SVC_API_URL ?? '')
}, testMillisMax)

async function startRelay({ bearer }: GivenUser): Promise<SessionView & { readonly instance_id: string }> {
  await api.post<OneSession>('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': randomUUID() } })
  const session = await eventually(
    async () => (await api.get<OneSession>('/relay/active', { bearer })).body.session,
    (found) => found?.state === 'active' && found.connect !== null,
    secondsMax,
  )
  return { ...session, instance_id: session.instance_id ?? '' }
}

const processOf = (instanceId: string) =>
  relayProcesses(servers.dataDir).find(({ instanceId: id }) => id === instanceId)
const logOf = (instanceId: string) => readFile(join(relayFolderOf(servers.dataDir), `${instanceId}.log`), 'utf8')
const caller = (url: string) => `${url}&mode=caller&latency=1000`

/** Resolves after a sweep that begins now, as if a minute had passed since the last one. */
async function sweep(): Promise<void> {
  const successes = () =>
    servers.query(async (sql) => {
      const [job] = await sql<
        { runs: number }[]
      >`select runs::int from jobs where name = 'sweep_orphans' and last_error is null`
      return job?.runs ?? 0
    })
  const before = await successes()
  await servers.query(async (sql) => {
    await sql`update instances set unowned_since = unowned_since - interval '1 minute'`
    await sql`update jobs set due_at = now() where name = 'sweep_orphans'`
  })
  await eventually(successes, (runs) => runs > before, secondsMax)
}

test('a stream that began after the backup goes on after the restore, and a relay without one ends', {
  timeout: testMillisMax,
}, async () => {
  const users = [await signUp(api), await signUp(api), await signUp(api)] as const
  await servers.query((sql) => Promise.all(users.map(({ userId }) => givePlan(sql, userId))))
  const [early, streaming, idle] = users
  const known = await startRelay(early)
  const folder = servers.newFolder()
  await servers.run('backup.sh', folder)

  const [live, silent] = [await startRelay(streaming), await startRelay(idle)]
  const source = new StreamSource(caller(live.connect?.srt_url ?? ''), 1_000)
  const sink = new StreamSink(caller(live.connect?.player_url ?? ''))
  await sink.untilReceived(50_000)
  const before = processOf(live.instance_id)
  await servers.loseAndRestore(folder)

  const health = async () =>
    (await (await fetch(new URL('/healthz', live.connect?.stats_url))).json()) as { readonly unknown_since?: string }
  const { unknown_since: since } = await eventually(health, (body) => body.unknown_since !== undefined, secondsMax)
  await sweep()
  await sweep()
  await eventually(
    () => logOf(live.instance_id),
    (log) => log.includes('which goes on with its stream'),
    secondsMax,
  )
  await eventually(
    () => processOf(silent.instance_id),
    (found) => found === undefined,
    secondsMax,
  )
  await sweep()
  await expectStreamGoesOn(source, sink)
  expect(processOf(live.instance_id)).toEqual(before)
  expect(Date.now() - Date.parse(since ?? '')).toBeGreaterThan(60_000)
  expect((await api.get<OneSession>('/relay/active', { bearer: early.bearer })).body.session).toMatchObject({
    state: 'active',
    instance_id: known.instance_id,
  })
})
