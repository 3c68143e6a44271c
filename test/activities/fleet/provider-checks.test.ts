/** The checks of the relay providers: what is logged and stored of a region that fails. */
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { providerCheckJobs } from '../../../activities/fleet/provider-check-jobs.ts'
import { createProviderChecks } from '../../../activities/fleet/provider-checks.ts'
import { listProviderChecks } from '../../../db/operations/provider-checks.ts'
import { RelayProviderError } from '../../../providers/relay/provider.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { createFakeRelays } from '../../support/fake-relay-provider.ts'
import { readMetrics } from '../../support/metrics.ts'
import { eventually, startService } from '../../support/relays.ts'

const regions = ['eu', 'us', 'asia']
const variables = {
  SVC_REGIONS: JSON.stringify(regions.map((region) => ({ region, display_name: region, provider: 'local' }))),
}
const wrongImage = new RelayProviderError('aws.image_id: EC2 shows no image ami-1', 'give_up', {
  detail: 'configuration',
})

let api: TestApi
beforeAll(async () => {
  api = await startApi(variables)
})
beforeEach(async () => {
  await api.sql`delete from provider_checks`
})

/** The checks of a worker that starts, with these answers of the providers. */
function givenChecks(answers: Readonly<Record<string, () => Promise<void>>>) {
  const { config, sql, log } = api.services
  const counts = { calls: 0 }
  const providers = new Map(
    regions.map((region) => {
      const check = async () => {
        counts.calls += 1
        await answers[region]?.()
      }
      return [region, { ...createFakeRelays(), check }] as const
    }),
  )
  return { checks: createProviderChecks({ config, sql, log, providers, millisMax: 300 }), counts }
}

const readErrors = async () =>
  Object.fromEntries((await listProviderChecks(api.sql)).map(({ region, error }) => [region, error]))
const errorLinesSince = (before: number) =>
  api.logged
    .slice(before)
    .map((line) => JSON.parse(line))
    .filter(({ level }) => level === 'error')

test('a failing region is logged once with its provider and what to fix, and stored', async () => {
  const before = api.logged.length
  const { checks } = givenChecks({ eu: () => Promise.reject(wrongImage), us: () => new Promise<never>(() => {}) })
  await checks.run()
  expect(await readErrors()).toEqual({
    asia: null,
    eu: wrongImage.message,
    us: 'the provider did not answer within 0.3 s',
  })
  expect(errorLinesSince(before)).toEqual([
    expect.objectContaining({ region: 'eu', provider: 'local', problem: wrongImage.message }),
    expect.objectContaining({ region: 'us', provider: 'local', problem: 'the provider did not answer within 0.3 s' }),
  ])
  const metric = await readMetrics(api)
  const resultOf = (region: string) => metric(`svc_provider_credentials_ok{region="${region}"}`)
  expect(regions.map(resultOf)).toEqual([0, 0, 1])
})

test('an error of a library is neither logged nor stored with its message, which may contain a secret', async () => {
  const before = api.logged.length
  const { checks } = givenChecks({ eu: () => Promise.reject(new TypeError('invalid header: Bearer s3cret')) })
  await checks.run()
  expect(await readErrors()).toMatchObject({ eu: 'the check failed with TypeError' })
  expect(api.logged.slice(before).join('\n')).not.toContain('s3cret')
})

test('a region that fails keeps the time of its first failure until a check succeeds', async () => {
  for (let times = 0; times < 2; times += 1) {
    await givenChecks({ eu: () => Promise.reject(wrongImage) }).checks.run()
    await api.sql`update provider_checks set failing_since = failing_since - interval '1 hour'`
  }
  const [failing] = (await listProviderChecks(api.sql)).filter(({ region }) => region === 'eu')
  expect((failing?.checkedAt.getTime() ?? 0) - (failing?.failingSince?.getTime() ?? 0)).toBeGreaterThan(7_000_000)
  await givenChecks({}).checks.run()
  expect((await listProviderChecks(api.sql)).map(({ failingSince, error }) => [failingSince, error])).toEqual(
    regions.map(() => [null, null]),
  )
})

test('the first run of the job shares the check that a worker makes at its start', async () => {
  const { checks, counts } = givenChecks({ eu: () => sleep(100) })
  const atStart = checks.run()
  for (const job of providerCheckJobs(checks)) await job.run()
  await atStart
  for (const job of providerCheckJobs(checks)) await job.run()
  expect(counts.calls).toBe(3)
})

test('a worker that stops does not wait for a provider that hangs', async () => {
  const { checks } = givenChecks({ us: () => new Promise<never>(() => {}) })
  const stopping = new AbortController()
  let hasTimedOut = false
  const atStart = checks.run().then(() => {
    hasTimedOut = true
  })
  const job = checks.run(stopping.signal)
  stopping.abort()
  await job
  expect(hasTimedOut).toBe(false)
  await atStart
})

test('a worker whose provider hangs starts, runs relays and records the failures of its provider by class', async () => {
  let failure: RelayProviderError | undefined = new RelayProviderError('unavailable', 'retry')
  const service = await startService({
    around: (provider) => ({
      ...provider,
      check: () => new Promise<never>(() => {}),
      create: (spec, signal) => {
        const error = failure
        failure = undefined
        return error ? Promise.reject(error) : provider.create(spec, signal)
      },
    }),
  })
  await service.activeRelay()
  // Postgres stores the metrics of workers as jsonb, which orders the labels by their length.
  const series = 'svc_provider_failures_total{region="local",failure="retry",provider="local"}'
  await eventually(
    async () => (await readMetrics(service.api))(series),
    (count) => count === 1,
  )
})
