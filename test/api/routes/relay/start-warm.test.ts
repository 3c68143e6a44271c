/** Starts in a region with warm instances, whose reports wait for a session. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { imageKey } from '../../../../platform/config/regions.ts'
import { instanceSecret } from '../../../../providers/relay/instance-secrets.ts'
import { streamTokenOf } from '../../../support/api.ts'
import { startService } from '../../../support/relays.ts'
import { insertWarmInstance, reportUnbound, untilReported } from '../../../support/unbound-relays.ts'

const master = randomBytes(48).toString('base64')
const local = { region: 'local', display_name: 'Here', provider: 'local', default: true, warm: 2 }
const { api, user: createUser } = await startService({
  worker: false,
  variables: {
    SVC_RELAY_AUTH_SECRET: master,
    SVC_REGIONS: JSON.stringify([local]),
    // A report waits a third of it at most.
    SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '90',
  },
})
const [region] = api.services.config.regions

const report = (instanceId: string, fields: object = {}) =>
  reportUnbound(api, instanceSecret(master, instanceId), { instance_id: instanceId, wait_seconds: 30, ...fields })

test('concurrent starts answer one waiting report each, with the session and the stream token of their user', async () => {
  const image = region && imageKey(region)
  const instanceIds = [await insertWarmInstance(api.sql, { image }), await insertWarmInstance(api.sql, { image })]
  const waiting = instanceIds.map((instanceId) => report(instanceId))
  await untilReported(api.sql, ...instanceIds)
  const users = [await createUser(), await createUser()]
  const sessions = (await Promise.all(users.map((user) => user.start()))).map(({ body }) => body.session)
  expect(sessions.map((session) => session.instance_id).toSorted()).toEqual(instanceIds.toSorted())
  const replies = await Promise.all(waiting)
  for (const [index, user] of users.entries()) {
    const { session_id, instance_id } = sessions[index] ?? {}
    const { body } = replies[instanceIds.indexOf(instance_id ?? '')] ?? {}
    const stream_token = await streamTokenOf(api, user.userId)
    expect(body).toMatchObject({ state: 'provisioning', assignment: { session_id, stream_token } })
    expect((await report(instance_id ?? '', { session_id })).body).toMatchObject({
      state: 'provisioning',
      desired: 'run',
    })
  }
})
