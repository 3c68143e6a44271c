/** The activities of warm instances when they are repeated, or a session claims the instance meanwhile. */
import { MockActivityEnvironment } from '@temporalio/testing'
import { expect, test } from 'vitest'
import { createWarmInstanceActivities } from '../../../activities/fleet/warm-instances.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { type RelayProvider, RelayProviderError } from '../../../providers/relay/provider.ts'
import { testEnvironment } from '../../support/environment.ts'
import { createFakeRelays } from '../../support/fake-relay-provider.ts'
import { startTransitions } from '../../support/relay-transitions.ts'
import { assignInstance, insertWarmInstance } from '../../support/unbound-relays.ts'

const { sql, insertSession } = await startTransitions()

/** The activities, with a provider whose calls are recorded. */
function givenActivities(calling: Partial<RelayProvider> = {}) {
  const calls: string[] = []
  const fake = createFakeRelays()
  const provider: RelayProvider = {
    ...fake,
    create: (spec, signal) => {
      calls.push('create')
      return fake.create(spec, signal)
    },
    destroy: async (instanceId) => {
      calls.push('destroy')
      await fake.destroy(instanceId)
    },
    ...calling,
  }
  const activities = createWarmInstanceActivities({
    config: readConfig(testEnvironment()),
    sql,
    providers: new Map([['local', provider]]),
  })
  return { activities, calls }
}

const rowOf = async (instanceId: string) =>
  (
    await sql<{ isRetired: boolean; isGone: boolean }[]>`
      select retired_at is not null as is_retired, gone_at is not null as is_gone from instances
      where instance_id = ${instanceId}`
  )[0]

test('the destruction of a warm instance that a session has claimed meanwhile leaves it to the session', async () => {
  const { activities, calls } = givenActivities()
  const instanceId = await insertWarmInstance(sql)
  await assignInstance(sql, instanceId, await insertSession())
  await activities.destroyWarmInstance({ instanceId })
  expect(calls).toEqual([])
  expect(await rowOf(instanceId)).toEqual({ isRetired: false, isGone: false })
})

test('the repeated creation of a warm instance that was launched calls no provider', async () => {
  const { activities, calls } = givenActivities()
  await activities.createWarmInstance({ instanceId: await insertWarmInstance(sql) })
  expect(calls).toEqual([])
})

test('the repeated creation of a warm instance counts as its latest attempt, so its absence from a list proves nothing yet', async () => {
  const { activities } = givenActivities({
    listLagSeconds: 60,
    create: () => Promise.reject(new RelayProviderError('the connection was reset')),
  })
  const instanceId = await insertWarmInstance(sql)
  await sql`
    update instances set launched_at = null, create_attempted_at = now() - interval '5 minutes'
    where instance_id = ${instanceId}`
  const run = (activity: typeof activities.createWarmInstance) =>
    new MockActivityEnvironment().run(activity, { instanceId })
  await expect(run(activities.createWarmInstance)).rejects.toThrow('the connection was reset')
  await expect(run(activities.destroyWarmInstance)).rejects.toThrow('may have been created')
  expect(await rowOf(instanceId)).toEqual({ isRetired: true, isGone: false })
})
