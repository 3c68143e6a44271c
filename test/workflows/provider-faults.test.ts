/** Faults of a provider through the whole stack. Each test has a region of its own, and all run at once. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type RelayProvider, RelayProviderError } from '../../providers/relay/provider.ts'
import { type CloudRegion, startHetznerRegions } from '../support/hetzner-service.ts'
import { eventually } from '../support/relays.ts'
import { startWithInput } from '../support/short-history.ts'

const names = [
  'lost-reply',
  'failing',
  'throttled',
  'hanging',
  'late',
  'locked',
  'deleting',
  'deleted',
  'quota',
  'full',
  'credentials',
  'two-zones',
  'destroy-fails',
] as const

/** No attempt of these tests comes near it. */
const provisionSeconds = 120
const secondsMax = 120

/** The first zone of this region has no room. */
const withTwoZones = (provider: RelayProvider): RelayProvider => ({
  ...provider,
  zones: 2,
  create: async (spec, signal) => {
    if (spec.zone === 0) throw new RelayProviderError('this zone has no room', 'try_other_zone')
    return provider.create(spec, signal)
  },
})

let inRegion: (name: (typeof names)[number]) => CloudRegion

beforeAll(async () => {
  inRegion = await startHetznerRegions({
    names,
    requestMillisMax: 2_000,
    variables: {
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: String(provisionSeconds),
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '300',
    },
    around: (provider, region) => (region === 'two-zones' ? withTwoZones(provider) : provider),
  })
})

/** Stops the relay, and expects the transitions of one that was active, and that nothing is left. */
async function stopActive({ service, untilCleanedUp }: CloudRegion, { user, sessionId }: Started): Promise<void> {
  await user.stop({ session_id: sessionId, immediate: true })
  await untilCleanedUp(sessionId)
  const { transitions } = await service.history(sessionId)
  expect(transitions.map(({ to }) => to)).toEqual(['active', 'grace', 'stopped'])
}
type Started = Awaited<ReturnType<CloudRegion['start']>>

/** The pauses between times. */
const pausesOf = (times: readonly number[]): number[] => times.slice(1).map((at, index) => at - (times[index] ?? 0))

describe.concurrent('a creation', { timeout: secondsMax * 1000 }, () => {
  test('that succeeds and loses its reply is repeated, and adopts the server', async () => {
    const region = inRegion('lost-reply')
    region.cloud.loseReplies(1, { method: 'POST' })
    const started = await region.start()
    await region.untilState(started.sessionId, 'active')
    expect(region.timesOf('POST')).toHaveLength(2)
    expect([...region.cloud.project.creations.values()]).toEqual([1])
    await stopActive(region, started)
  })

  test('that fails four times in a row is repeated after growing pauses', async () => {
    const region = inRegion('failing')
    region.cloud.fail(4, { method: 'POST' })
    const started = await region.start()
    await region.untilState(started.sessionId, 'active')
    const pauses = pausesOf(region.timesOf('POST'))
    expect(pauses).toHaveLength(4)
    for (const [index, millisMin] of [500, 1000, 2000, 4000].entries())
      expect(pauses[index]).toBeGreaterThanOrEqual(millisMin)
    await stopActive(region, started)
  })

  test('that is throttled for 3 s is repeated when the provider allows it, and not before', async () => {
    const region = inRegion('throttled')
    region.cloud.throttle(3_000)
    const throttledUntil = Date.now() + 3_000
    const started = await region.start()
    await region.untilState(started.sessionId, 'active')
    const posts = region.cloud.requests.filter(({ method }) => method === 'POST')
    expect(posts.length).toBeLessThanOrEqual(2)
    expect(posts.at(-1)?.at).toBeGreaterThanOrEqual(throttledUntil)
    await stopActive(region, started)
  })

  test('that hangs ends at the deadline of provisioning, and each attempt at the timeout of requests', async () => {
    const region = inRegion('hanging')
    region.cloud.hang(Number.POSITIVE_INFINITY, { method: 'POST' })
    const { api, user } = region.service
    const settings = { ...api.services.config.relay, provisionTimeoutSeconds: 6 }
    const sessionId = await startWithInput(api, await user(), { region: 'hanging', settings })
    expect(await region.untilState(sessionId, 'stopped')).toEqual(['stopped', 'provision_timeout'])
    const times = region.timesOf('POST')
    expect(times.length).toBeGreaterThan(1)
    for (const pause of pausesOf(times)) expect(pause).toBeGreaterThanOrEqual(2_400)
    await region.skipListLag(sessionId)
    await region.untilCleanedUp(sessionId)
  })

  test('that the provider performs after the clean-up of its session is destroyed by the sweep', async () => {
    const region = inRegion('late')
    const { cloud, service } = region
    let perform = () => {}
    const performed = new Promise<undefined>((resolve) => {
      perform = () => resolve(undefined)
    })
    cloud.onStage = async (stage, { method }) =>
      stage === 'received' && method === 'POST' ? await performed : undefined
    const { user, sessionId } = await region.start()
    await eventually(
      () => region.timesOf('POST').length,
      (count) => count >= 1,
    )
    await user.stop({ session_id: sessionId, immediate: true })
    await region.untilState(sessionId, 'stopped')
    await region.skipListLag(sessionId)
    await region.untilCleanedUp(sessionId)
    perform()
    await eventually(
      () => [...cloud.project.creations.values()],
      (creations) => creations.length === 1,
    )
    // The report of the instance starts the sweep at once.
    await region.untilCleanedUp(sessionId)
    expect([...cloud.project.creations.values()]).toEqual([1])
    const { transitions } = await service.history(sessionId)
    expect(transitions).toMatchObject([{ to: 'stopped', reason: 'stop_requested' }])
  })

  test.each([
    { region: 'quota', code: 'resource_limit_exceeded', status: 403, detail: 'quota' },
    { region: 'full', code: 'resource_unavailable', status: 422, detail: 'capacity' },
    { region: 'credentials', code: 'unauthorized', status: 401, detail: 'configuration' },
  ] as const)('that is refused with $code ends at once with the detail $detail', async (refused) => {
    const region = inRegion(refused.region)
    region.cloud.refuse(1, refused.code, { status: refused.status, method: 'POST' })
    const { sessionId } = await region.start()
    expect(await region.untilState(sessionId, 'stopped')).toEqual(['stopped', 'provision_failed', refused.detail])
    await region.skipListLag(sessionId)
    await region.untilCleanedUp(sessionId)
    expect(region.timesOf('POST')).toHaveLength(1)
    expect(region.cloud.project.creations.size).toBe(0)
  })

  test('in a zone without room moves on to the next zone, and the row of the first is gone', async () => {
    const region = inRegion('two-zones')
    const started = await region.start()
    await region.untilState(started.sessionId, 'active')
    const rows = await region.service.api.sql`
      select zone, gone_at is not null as is_gone, instance_id = any(${region.cloud.project.servers().map(({ name }) => name)})
        as exists from instances where session_id = ${started.sessionId} order by zone`
    expect(rows).toEqual([
      { zone: 0, isGone: true, exists: false },
      { zone: 1, isGone: false, exists: true },
    ])
    await stopActive(region, started)
  })
})

describe.concurrent('a destruction', { timeout: secondsMax * 1000 }, () => {
  const startActive = async (name: (typeof names)[number]) => {
    const region = inRegion(name)
    const started = await region.start()
    await region.untilState(started.sessionId, 'active')
    const [server] = region.cloud.project.servers()
    if (!server) throw new Error('an active relay has no server')
    return { region, started, server }
  }

  test('of a locked server is repeated after growing pauses until it is unlocked', async () => {
    const { region, started, server } = await startActive('locked')
    server.isLocked = true
    const stopped = stopActive(region, started)
    await eventually(
      () => region.timesOf('DELETE').length,
      (count) => count >= 4,
    )
    server.isLocked = false
    await stopped
    // Those of the clean-up follow after pauses of 0.5, 1, 2 and 4 s. The sweep, which each report for a stopped
    // session starts, adds at most one a second.
    const times = region.timesOf('DELETE')
    expect(times.length).toBeLessThanOrEqual(5 + Math.ceil((times.at(-1) ?? 0) / 1000))
  })

  test('of a server that is being deleted already waits for its end', async () => {
    const { region, started, server } = await startActive('deleting')
    region.cloud.project.deleteMillis = 1_500
    region.cloud.project.delete(server)
    await stopActive(region, started)
    expect(region.timesOf('DELETE')).toEqual([])
  })

  test('of a server that is deleted at the same moment succeeds', async () => {
    const { region, started, server } = await startActive('deleted')
    region.cloud.onStage = async (stage, { method }) => {
      if (stage === 'received' && method === 'DELETE') region.cloud.project.delete(server)
      return undefined
    }
    await stopActive(region, started)
    // One of the clean-up, and perhaps one of the sweep.
    expect(region.timesOf('DELETE').length).toBeGreaterThanOrEqual(1)
  })

  test('that fails and loses its replies is repeated until the provider shows no server', async () => {
    const { region, started } = await startActive('destroy-fails')
    region.cloud.fail(3, { method: 'DELETE' })
    region.cloud.loseReplies(1, { url: /svc-session/ })
    await stopActive(region, started)
    expect(region.timesOf('DELETE').length).toBeGreaterThanOrEqual(4)
  })
})
