/** The metrics of relay sessions: stuck, quiet and overlong ones, and the sums of streams. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { listQuietSessions } from '../../../db/relay/health.ts'
import { type GivenUser, givePlan, startApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'
import { writeActive, writeAge, writeStopGrace } from '../../support/relay-rows.ts'

const api = await startApi()

async function startSession(user: GivenUser, connectionId: string): Promise<string> {
  const answer = await api.post<{ session: { session_id: string } }>(
    '/relay/start',
    { connection_id: connectionId },
    { bearer: user.bearer, headers: { 'Idempotency-Key': randomUUID() } },
  )
  return answer.body.session.session_id
}

test('sessions behind the deadline of their state are stuck, and streams are summed by region', async () => {
  const user = await api.given.user()
  await givePlan(api.sql, user.userId, 3)
  const [waiting = '', grace = '', first = '', second = ''] = await Promise.all(
    ['one', 'two', 'three', 'four'].map((name) => startSession(user, name)),
  )
  await writeStopGrace(api.sql, grace)
  const stuckIn = async (state: string) =>
    (await readMetrics(api))(`svc_relay_sessions_stuck{state="${state}",region="local"}`)
  expect([await stuckIn('provisioning'), await stuckIn('grace')]).toEqual([0, 0])
  await writeAge(api.sql, waiting, api.services.config.relay.provisionTimeoutSeconds + 121)
  await api.sql`update relay_sessions set grace_ends_at = now() - interval '121 seconds' where id = ${grace}`
  expect([await stuckIn('provisioning'), await stuckIn('grace')]).toEqual([1, 1])

  for (const id of [first, second]) await writeActive(api.sql, id)
  await api.sql`
    insert into relay_health (session_id, instance_id, ingest_at, is_publishing, bitrate_kbps, links, players, rtt_ms, loss_pct) values
      (${first}, 'i-1', now(), true, 6000, 3, 2, 40, 1), (${second}, 'i-1', now(), true, 4000, 1, 0, null, null),
      (${grace}, 'i-1', now(), false, 0, 0, 1, null, null)`
  const metric = await readMetrics(api)
  const ofRegion = (name: string) => metric(`${name}{region="local"}`)
  expect(ofRegion('svc_relay_streams')).toBe(2)
  expect(ofRegion('svc_relay_ingest_bits_per_second')).toBe(10_000_000)
  expect(ofRegion('svc_relay_ingest_links')).toBe(4)
  expect(ofRegion('svc_relay_players')).toBe(3)
  expect(ofRegion('svc_relay_ingest_round_trip_seconds')).toBe(0.04)
  expect(ofRegion('svc_relay_ingest_loss_ratio')).toBe(0.01)

  await api.sql`update relay_health set last_report_at = now() - interval '1 hour'`
  expect((await readMetrics(api))('svc_relay_streams{region="local"}')).toBe(0)
})

test('active sessions without a report for half the health timeout are quiet, and long sessions are counted', async () => {
  const { healthTimeoutSeconds, maxSessionSeconds } = api.services.config.relay
  const user = await api.given.user()
  await givePlan(api.sql, user.userId, 3)
  const names = ['reporting', 'silent', 'never-reported', 'just-active']
  const [reporting = '', silent = '', neverReported = '', justActive = ''] = await Promise.all(
    names.map((name) => startSession(user, name)),
  )
  for (const id of [reporting, silent, neverReported, justActive]) await writeActive(api.sql, id)
  await api.sql`
    update relay_sessions set active_at = now() - make_interval(secs => ${healthTimeoutSeconds * 2})
    where id in (${reporting}, ${silent}, ${neverReported})`
  await api.sql`
    insert into relay_health (session_id, instance_id, last_report_at) values
      (${reporting}, 'i-1', now()),
      (${silent}, 'i-1', now() - make_interval(secs => ${healthTimeoutSeconds / 2 + 1})),
      -- Of an instance that the session had before.
      (${neverReported}, 'i-0', now())`
  await writeAge(api.sql, silent, maxSessionSeconds + 1)
  const present = (seconds: number) =>
    api.sql`update presence set seen_at = now(), since = now() - make_interval(secs => ${seconds}) where role = 'api'`

  const figures = async () => {
    await api.sql`
      update relay_sessions set active_at = now()
      where state = 'active' and id not in (${reporting}, ${silent}, ${neverReported})`
    await api.sql`update relay_health set last_report_at = now() where session_id = ${reporting}`
    const metric = await readMetrics(api)
    return [metric('svc_relay_sessions_quiet{region="local"}'), metric('svc_relay_sessions_overlong')]
  }
  await present(healthTimeoutSeconds)
  expect(await figures()).toEqual([2, 1])
  expect((await listQuietSessions(api.sql, healthTimeoutSeconds / 2)).map(({ id }) => id).toSorted()).toEqual(
    [silent, neverReported].toSorted(),
  )
  // No report could be received before.
  await present(1)
  expect(await figures()).toEqual([0, 1])
})
