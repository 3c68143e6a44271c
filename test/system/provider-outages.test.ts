/** Faults of a provider that last for a minute, with the real limits of time. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type CloudRegion, startHetznerRegions } from '../support/hetzner-service.ts'
import { eventually } from '../support/relays.ts'

const names = ['throttled', 'lagging', 'stopped-while-lagging'] as const
const listLagMillis = 30_000
const secondsMax = 150

let inRegion: (name: (typeof names)[number]) => CloudRegion

beforeAll(async () => {
  inRegion = await startHetznerRegions({
    names,
    requestMillisMax: 15_000,
    variables: { SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '300', SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '45' },
  })
})

describe.concurrent('a start', { timeout: 2 * secondsMax * 1000 }, () => {
  test('on a provider that limits calls for a minute is active after it, with two calls', async () => {
    const region = inRegion('throttled')
    region.cloud.throttle(60_000)
    const throttledUntil = Date.now() + 60_000
    const { user, sessionId } = await region.start()
    await region.untilState(sessionId, 'active', secondsMax)
    const posts = region.cloud.requests.filter(({ method }) => method === 'POST')
    expect(posts.length).toBeLessThanOrEqual(2)
    expect(posts.at(-1)?.at).toBeGreaterThanOrEqual(throttledUntil)
    await user.stop({ session_id: sessionId, immediate: true })
    await region.untilCleanedUp(sessionId)
  })

  test('whose creation lost its reply adopts the server when it is listed, 30 s later', async () => {
    const region = inRegion('lagging')
    region.cloud.project.listLagMillis = listLagMillis
    region.cloud.loseReplies(1, { method: 'POST' })
    const { user, sessionId } = await region.start()
    await region.untilState(sessionId, 'active', secondsMax)
    expect([...region.cloud.project.creations.values()]).toEqual([1])
    await user.stop({ session_id: sessionId, immediate: true })
    await region.untilCleanedUp(sessionId, secondsMax)
  })

  test('that is stopped before its server is listed leaves no server', async () => {
    const region = inRegion('stopped-while-lagging')
    const { cloud } = region
    cloud.project.listLagMillis = listLagMillis
    cloud.loseReplies(Number.POSITIVE_INFINITY, { method: 'POST' })
    const { user, sessionId } = await region.start()
    await eventually(
      () => cloud.project.servers().length,
      (count) => count === 1,
    )
    await user.stop({ session_id: sessionId, immediate: true })
    expect(await region.untilState(sessionId, 'stopped')).toEqual(['stopped', 'stop_requested'])
    await region.untilCleanedUp(sessionId, secondsMax)
    expect([...cloud.project.creations.values()]).toEqual([1])
    const [created, deleted] = ['POST', 'DELETE'].map(
      (name) => cloud.requests.find(({ method }) => method === name)?.at,
    )
    expect((deleted ?? 0) - (created ?? 0)).toBeGreaterThanOrEqual(listLagMillis)
  })
})
