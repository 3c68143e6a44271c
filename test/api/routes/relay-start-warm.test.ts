/** A start on a warm instance, from the report that waits to the active session. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { instanceSecret } from '../../../platform/instance-secrets.ts'
import { streamTokenOf } from '../../support/api.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { eventually } from '../../support/relays.ts'
import { reportUnbound } from '../../support/unbound-relays.ts'

const master = randomBytes(48).toString('base64')
const region = { region: 'here', display_name: 'Here', provider: 'local', default: true, warm: 2 }
const service = await startFakeRelayService({
  variables: {
    SVC_RELAY_AUTH_SECRET: master,
    SVC_REGIONS: JSON.stringify([region]),
    // A report waits a third of it at most.
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '60',
  },
})
const { api } = service

const report = (instanceId: string, fields: object = {}) =>
  reportUnbound(api, instanceSecret(master, instanceId), { instance_id: instanceId, wait_seconds: 15, ...fields })

const listWarmInstances = () => api.sql<{ instanceId: string }[]>`
  select instance_id from instances
  where is_warm and session_id is null and launched_at is not null and retired_at is null and gone_at is null`

test('starts are answered with the sessions of waiting instances, whose next reports make them active', async () => {
  const instances = await eventually(listWarmInstances, (found) => found.length === 2)
  const waiting = instances.map(({ instanceId }) => report(instanceId))
  await eventually(
    () => api.sql`select from instances where last_report_at is not null`,
    (found) => found.length === 2,
  )
  const users = [await service.user(), await service.user()]
  const started = await Promise.all(users.map((user) => user.start()))
  expect(started.map(({ status }) => status)).toEqual([201, 201])
  const replies = await Promise.all(waiting)
  const assigned = await Promise.all(
    instances.map(async ({ instanceId }, index) => {
      const { assignment } = replies[index]?.body ?? {}
      expect((await report(instanceId, { session_id: assignment?.session_id })).status).toBe(200)
      return { ...assignment, instanceId }
    }),
  )
  for (const user of users) {
    const session = await eventually(
      async () => (await user.active()).session,
      (found) => found?.state === 'active',
    )
    const assignment = assigned.find(({ session_id }) => session_id === session?.session_id)
    expect(assignment?.instanceId).toBe(session?.instance_id)
    expect(assignment?.stream_token).toBe(await streamTokenOf(api, user.userId))
  }
})
