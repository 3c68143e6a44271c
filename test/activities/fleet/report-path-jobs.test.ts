/** The path of reports to the API is cut: its proxy, name or certificate is away while the API and the relays run. */
import { MockActivityEnvironment } from '@temporalio/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { createWarmInstanceActivities } from '../../../activities/fleet/warm-instances.ts'
import type { SessionView } from '../../../api/views/relay-session.ts'
import { type FakeRelayService, startFakeRelayService } from '../../support/fake-relays.ts'
import { suspendJob } from '../../support/jobs.ts'
import { findFreePort } from '../../support/ports.ts'
import { endGrace, lengthenReception, makeSilent } from '../../support/relay-jobs.ts'
import { eventually, type Passage, passageTo } from '../../support/relays.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'

/** Each test has regions of its own. */
const regions = ['one', 'three', 'six', 'cut', 'reporting', 'gone', 'grace', 'starting', 'warm', 'unwatched'] as const
type Region = (typeof regions)[number]

let service: FakeRelayService
let passage: Passage

beforeAll(async () => {
  const port = await findFreePort()
  passage = await passageTo(`http://127.0.0.1:${port}`)
  service = await startFakeRelayService({
    variables: {
      ...longRelayTimeouts,
      SVC_RELAY_GRACE_SECONDS: '600',
      PORT: String(port),
      SVC_API_URL: new URL(passage.url).origin,
      SVC_REGIONS: JSON.stringify(
        regions.map((region) => ({ region, display_name: region, provider: 'local', warm: region === 'warm' ? 1 : 0 })),
      ),
    },
  })
  await probe()
})

const probe = () => service.runJob('probe_api')

/** Cuts the path an hour ago, for the time that a test takes. */
async function whileCut(act: () => Promise<void>): Promise<void> {
  await passage.block()
  await probe()
  await forgetPaths()
  try {
    await act()
  } finally {
    await passage.open()
    await probe()
  }
}

/** As if no path had been seen open for an hour. */
async function forgetPaths(): Promise<void> {
  const { sql } = service.api
  await sql`update report_paths set since = since - interval '1 hour', seen_at = seen_at - interval '1 hour'`
}

const startRelays = async (region: Region, count: number): Promise<SessionView[]> =>
  Promise.all(Array.from({ length: count }, async () => service.startActiveRelay(await service.user(), { region })))
const idsOf = (sessions: readonly SessionView[]) => sessions.map(({ session_id }) => session_id)
const stateOf = async (sessionId: string) => (await service.history(sessionId)).session.state
const statesOf = (sessions: readonly SessionView[]) => Promise.all(idsOf(sessions).map(stateOf))

/** No workflow was signalled that its relay is silent: the transition comes later than the signal. */
async function expectUntouched(sessions: readonly SessionView[]): Promise<void> {
  const { sql } = service.api
  const rows = await sql`
    select state, signal_at is not null as is_signalled from relay_sessions where id in ${sql(idsOf(sessions))}`
  expect([...rows]).toEqual(sessions.map(() => ({ state: 'active', isSignalled: false })))
}

/** Looks for silent relays after all of them have been silent for an hour. */
async function watchSilent(sessions: readonly SessionView[]): Promise<void> {
  await makeSilent(service.api, idsOf(sessions))
  await service.runJob('watch_health')
}

/** Resolves when the silence of all of them has been noticed. */
const untilLost = (sessions: readonly SessionView[]) =>
  eventually(
    async () => {
      await watchSilent(sessions)
      return statesOf(sessions)
    },
    (states) => states.every((state) => state === 'grace'),
  )

describe('while relays cannot reach the API', () => {
  test.each([
    ['one', 1],
    ['three', 3],
    ['six', 6],
  ] as const)('silence ends no relay of a region with %s, and counts again afterwards', async (region, count) => {
    const sessions = await startRelays(region, count)
    await whileCut(async () => {
      await watchSilent(sessions)
      await probe()
      await watchSilent(sessions)
      await expectUntouched(sessions)
    })
    // They have been silent for an hour, and could have reported for a moment of it.
    await service.runJob('watch_health')
    await expectUntouched(sessions)
    const [silent, ...reporting] = sessions
    if (!silent) throw new Error('the region has a relay')
    for (const { session_id: sessionId } of reporting) await service.sendReport(sessionId)
    await untilLost([silent])
    if (reporting.length > 0) await expectUntouched(reporting)
  })

  test('a silent relay is ended in a region of which another one reports, and none of the other region', async () => {
    const [reporting, silent] = await startRelays('reporting', 2)
    const [other] = await startRelays('cut', 1)
    if (!reporting || !silent || !other) throw new Error('the relays have started')
    await whileCut(async () => {
      await service.sendReport(reporting.session_id)
      await probe()
      await untilLost([silent])
      await watchSilent([other])
      await expectUntouched([reporting, other])
    })
  })

  test('a relay whose provider shows it gone is ended', async () => {
    const sessions = await startRelays('gone', 2)
    const [gone, hanging] = sessions
    if (!gone || !hanging) throw new Error('the relays have started')
    await whileCut(async () => {
      await service.relayProvider.destroy(gone.instance_id ?? '')
      await eventually(
        async () => {
          await watchSilent(sessions)
          return stateOf(gone.session_id)
        },
        (state) => state === 'stopped',
      )
      await expectUntouched([hanging])
    })
  })

  test('the grace of a relay that was silent before does not end', async () => {
    const sessions = await startRelays('grace', 1)
    const [{ session_id: sessionId } = { session_id: '' }] = sessions
    await untilLost(sessions)
    await whileCut(async () => {
      await endGrace(service.api, sessionId)
      const readEnd = async () => (await service.history(sessionId)).session.grace_ends_at ?? ''
      await eventually(readEnd, (end) => Date.parse(end) > Date.now() + 5000)
      expect(await stateOf(sessionId)).toBe('grace')
    })
  })

  test('an instance that has not reported yet is neither replaced nor given up', async () => {
    const user = await service.user()
    const { session_id: sessionId } = (await user.start({ region: 'starting' })).body.session
    const instanceOf = async () => (await service.history(sessionId)).session.instance_id
    const instanceId = await eventually(instanceOf, (bound) => bound !== null)
    await whileCut(async () => {
      const { sql, services } = service.api
      await makeSilent(service.api, [sessionId])
      await sql`update instances set is_warm = true where session_id = ${sessionId}`
      await sql`update relay_sessions set created_at = created_at - interval '1 hour' where id = ${sessionId}`
      await services.relaySessions.wake(sessionId)
      await service.runJob('watch_health')
      expect(await instanceOf()).toBe(instanceId)
    })
    await service.sendReport(sessionId, { instance_id: instanceId })
    await eventually(
      () => stateOf(sessionId),
      (state) => state === 'active',
    )
  })
})

test('warm instances are not replaced for their silence while relays cannot reach the API', async () => {
  const { sql, services } = service.api
  const { planWarmInstances } = createWarmInstanceActivities({ ...services, providers: new Map() })
  // As the workflow of the region does when it is woken.
  const plan = () => new MockActivityEnvironment().run(planWarmInstances, { region: 'warm', mayCreate: false })
  await service.runJob('watch_warm_instances')
  const [{ instanceId } = { instanceId: '' }] = await eventually(
    () =>
      sql<
        { instanceId: string }[]
      >`select instance_id from instances where region = 'warm' and launched_at is not null`,
    (launched) => launched.length === 1,
  )
  const silence = async () => {
    await lengthenReception(sql)
    await sql`update instances set last_report_at = now() - interval '1 hour' where instance_id = ${instanceId}`
  }
  await whileCut(async () => {
    await silence()
    expect(await plan()).toMatchObject({ unbound: 1, destroy: [] })
  })
  await silence()
  expect(await plan()).toMatchObject({ unbound: 0, destroy: [instanceId] })
})

test('silence does not count when no worker has looked at the path, as when the last one died in an outage', async () => {
  const { sql } = service.api
  const sessions = await startRelays('unwatched', 1)
  await suspendJob(sql, 'probe_api')
  await forgetPaths()
  await watchSilent(sessions)
  await expectUntouched(sessions)
  await probe()
  await untilLost(sessions)
})

test('silence counts where no worker has ever reached the API through its address, or none for a day', async () => {
  const { sql } = service.api
  const sessions = await startRelays('unwatched', 1)
  const others = await startRelays('cut', 1)
  await whileCut(async () => {
    await sql`update api_probe set reached_at = now() - interval '25 hours'`
    await probe()
    await untilLost(sessions)
    await sql`update api_probe set reached_at = null`
    await forgetPaths()
    await probe()
    await untilLost(others)
  })
})
