/** Reports of relays after the database was restored, or was taken for another one. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { beginEpoch } from '../../../../db/epochs.ts'
import { type ErrorBody, statusAndCode } from '../../../support/api.ts'
import { writeProvisionFailed } from '../../../support/relay-rows.ts'
import { operator, startService, type TestService } from '../../../support/relays.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

const report = (sessionId: string, fields: object = {}) =>
  service.api.post<{ readonly epoch?: string | null } & Partial<ErrorBody>>(
    '/relay/health',
    { session_id: sessionId, instance_id: 'relay-1', ...fields },
    { headers: { 'X-Relay-Auth': service.api.services.config.relayAuthSecrets[0] ?? '' } },
  )

/** A session with the instance, and the epoch of its first report. */
async function givenSession(instanceId = 'relay-1') {
  const { session_id: id } = (await (await service.user()).start()).body.session
  await service.api.sql`update relay_sessions set instance_id = ${instanceId} where id = ${id}`
  const { status, body } = await report(id, { instance_id: instanceId })
  expect(status).toBe(200)
  return { id, epoch: body.epoch ?? '' }
}

const orphans = () => service.api.sql`select instance_id from instances where unowned_since is not null`

test('replies have the epoch of the database, which is the same until the name of the epoch changes', async () => {
  const { id, epoch } = await givenSession()
  expect(await beginEpoch(service.api.sql, 'initial')).toBe(false)
  expect((await report(id, { epoch })).body.epoch).toBe(epoch)
  expect(await beginEpoch(service.api.sql, randomUUID())).toBe(true)
  const { status, body } = await report(id, { epoch })
  expect([status, body.epoch === epoch]).toEqual([200, false])
})

test('a session that has another instance is unknown to a relay of another epoch, and a mismatch to one of this', async () => {
  const { id, epoch } = await givenSession('relay-2')
  expect(statusAndCode(await report(id, { epoch }))).toEqual([409, 'instance_mismatch'])
  expect(statusAndCode(await report(id))).toEqual([409, 'instance_mismatch'])
  expect(statusAndCode(await report(id, { epoch: randomUUID() }))).toEqual([404, 'not_found'])
  // Not an epoch of this service, so it counts as none.
  expect(statusAndCode(await report(id, { epoch: 'x'.repeat(100) }))).toEqual([409, 'instance_mismatch'])
})

test('a session that is stopped is unknown to a relay of another epoch, whose instance is no orphan for that', async () => {
  const { id, epoch } = await givenSession()
  await writeProvisionFailed(service.api.sql, id, null)
  expect(statusAndCode(await report(id, { epoch: randomUUID() }))).toEqual([404, 'not_found'])
  expect(await orphans()).toEqual([])
  expect(statusAndCode(await report(id, { epoch }))).toEqual([409, 'invalid_transition'])
  expect(await orphans()).toHaveLength(1)
})

test('a disconnected session ends a relay of any epoch', async () => {
  const { id } = await givenSession()
  await service.api.post(`/admin/sessions/${id}/disconnect`, { reason: 'a test' }, { headers: operator })
  expect((await report(id, { epoch: randomUUID() })).body).toMatchObject({ desired: 'stop' })
})
