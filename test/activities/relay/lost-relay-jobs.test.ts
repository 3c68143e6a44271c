/** The job that proves whether suspect relays are gone. */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { lostRelayJobs } from '../../../activities/relay/lost-relay-jobs.ts'
import type { RelayProvider } from '../../../providers/relay/provider.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createFakeRelays } from '../../support/fake-relay-provider.ts'
import { lengthenReception } from '../../support/relay-jobs.ts'
import { writeActive } from '../../support/relay-rows.ts'

let api: TestApi
beforeAll(async () => {
  const { DATABASE_URL: _, ...environment } = process.env
  api = await startApi({
    ...environment,
    SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '20',
    SVC_REGIONS: JSON.stringify([
      { region: 'local', display_name: 'Local', provider: 'local', capacity: 50 },
      { region: 'machine', display_name: 'Machine', provider: 'local', capacity: 50 },
    ]),
  } as Record<string, string>)
})
beforeEach(async () => {
  await api.sql`delete from relay_health`
  await lengthenReception(api.sql)
})

interface Relay {
  readonly sessionId: string
  readonly instanceId: string
  readonly server: Server
}

/** An active session whose relay answers `/healthz` with an instance id, its own by default. */
async function givenRelay(answeredId?: string): Promise<Relay> {
  const instanceId = `i-${randomUUID()}`
  const server = createServer((_, response) =>
    response.end(JSON.stringify({ status: 'ok', instance_id: answeredId ?? instanceId })),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { userId } = await api.given.user()
  const [row] = await api.sql<{ id: string }[]>`
    insert into relay_sessions (user_id, connection_id, region, command_initiator)
    values (${userId}, ${randomUUID()}, 'local', 'user') returning id`
  const sessionId = row?.id ?? ''
  await writeActive(api.sql, sessionId)
  await api.sql`
    update relay_sessions set instance_id = ${instanceId}, relay_host = '127.0.0.1',
      stats_port = ${(server.address() as AddressInfo).port}, active_at = now() - interval '1 minute' where id = ${sessionId}`
  await api.sql`
    insert into relay_health (session_id, instance_id, last_report_at, is_held) values (${sessionId}, ${instanceId}, now(), true)`
  return { sessionId, instanceId, server }
}

const suspect = ({ sessionId }: Relay) => api.sql`
  update relay_health set last_report_at = now() - interval '3 seconds', suspect_since = now() - interval '1 second'
  where session_id = ${sessionId}`

async function endServer({ server }: Relay): Promise<void> {
  server.closeAllConnections()
  await new Promise<void>((done) => server.close(() => done()))
}

/** A worker's job, with a provider that knows which of its instances have ended. */
function givenJob(endedIds: ReadonlySet<string> = new Set(), onAsked: () => Promise<void> = async () => {}) {
  const gone: string[] = []
  const { config, sql, log } = api.services
  const hasEnded: RelayProvider['hasEnded'] = async (instanceId) => {
    await onAsked()
    return endedIds.has(instanceId)
  }
  const provider: RelayProvider = { ...createFakeRelays(), hasEnded }
  const relayGone = async (sessionId: string) => {
    gone.push(sessionId)
    return true
  }
  const [job] = lostRelayJobs({
    config,
    sql,
    log,
    relaySessions: { ...api.services.relaySessions, relayGone },
    providers: new Map([['local', provider]]),
    metrics: { countGoneRelay: () => {} },
  })
  return { gone, run: async () => void (await job?.run()) }
}

describe('a suspect relay is gone', () => {
  test('when its provider says that it has ended, and its session is signalled once', async () => {
    const relay = await givenRelay()
    await suspect(relay)
    const { gone, run } = givenJob(new Set([relay.instanceId]))
    await run()
    await run()
    expect(gone).toEqual([relay.sessionId])
  })

  test('when it answered before and refuses now, while another relay answers', async () => {
    const [relay] = [await givenRelay(), await givenRelay()]
    const { gone, run } = givenJob()
    await run()
    await endServer(relay)
    await suspect(relay)
    await run()
    expect(gone).toEqual([relay.sessionId])
  })
})

describe('a relay is not gone', () => {
  test('while nothing is suspicious, whatever its provider says', async () => {
    const relay = await givenRelay()
    const { gone, run } = givenJob(new Set([relay.instanceId]))
    await run()
    expect(gone).toEqual([])
  })

  test('when it answers', async () => {
    const relay = await givenRelay()
    const { gone, run } = givenJob()
    await run()
    await suspect(relay)
    await run()
    expect(gone).toEqual([])
  })

  test('when its host refuses and no other relay answers: the network of the worker may be the cause', async () => {
    const relay = await givenRelay()
    const { gone, run } = givenJob()
    await run()
    await endServer(relay)
    await suspect(relay)
    await run()
    expect(gone).toEqual([])
  })

  test('when it refuses once and answers again, as after a restart of its program', async () => {
    const [relay] = [await givenRelay(), await givenRelay()]
    const port = (relay.server.address() as AddressInfo).port
    const restart = async () => {
      relay.server.listen(port, '127.0.0.1')
      await once(relay.server, 'listening')
    }
    let questions = 0
    const { gone, run } = givenJob(new Set(), async () => {
      questions += 1
      // The provider is asked before each probe.
      if (questions === 2) await restart()
    })
    await run()
    await endServer(relay)
    await suspect(relay)
    await run()
    expect(questions).toBe(2)
    expect(gone).toEqual([])
  })

  test('when it has never answered this worker', async () => {
    const [relay] = [await givenRelay(), await givenRelay()]
    await endServer(relay)
    await suspect(relay)
    const { gone, run } = givenJob()
    await run()
    expect(gone).toEqual([])
  })

  test('when another relay answers at its address', async () => {
    const [relay] = [await givenRelay('i-another'), await givenRelay()]
    await suspect(relay)
    const { gone, run } = givenJob()
    await run()
    await run()
    expect(gone).toEqual([])
  })

  test('when a report came after the proof', async () => {
    const relay = await givenRelay()
    await api.sql`
      update relay_health set gone_at = now() - interval '1 second', last_report_at = now() where session_id = ${relay.sessionId}`
    const { gone, run } = givenJob()
    await run()
    expect(gone).toEqual([])
  })
})

const isSuspect = async ({ sessionId }: Relay) =>
  (await api.sql`select from relay_health where session_id = ${sessionId} and suspect_since > last_report_at`).count ===
  1

describe('a relay that is late with a report', () => {
  const silentFor = (relay: Relay, seconds: number) => api.sql`
    update relay_health set last_report_at = now() - make_interval(secs => ${seconds}) where session_id = ${relay.sessionId}`

  test('is suspect when it holds its reports open', async () => {
    const relay = await givenRelay()
    await silentFor(relay, 9)
    const { run } = givenJob()
    await run()
    expect(await isSuspect(relay)).toBe(false)
    await silentFor(relay, 10)
    await run()
    expect(await isSuspect(relay)).toBe(true)
  })

  test('is not suspect when it is of an earlier version, which holds none', async () => {
    const relay = await givenRelay()
    await api.sql`update relay_health set is_held = false where session_id = ${relay.sessionId}`
    await silentFor(relay, 15)
    await givenJob().run()
    expect(await isSuspect(relay)).toBe(false)
  })

  test('is not suspect while no API could take its reports', async () => {
    const relay = await givenRelay()
    await silentFor(relay, 15)
    await api.sql`update presence set since = now(), seen_at = now() where role = 'api'`
    await givenJob().run()
    expect(await isSuspect(relay)).toBe(false)
  })
})
