/** Why a relay could not be created, in every reply that contains its session. */
import { beforeAll, expect, test } from 'vitest'
import { provisioningDetails } from '../../../../domain/relay/session.ts'
import { writeProvisionFailed } from '../../../support/relay-rows.ts'
import { operator, startService, type TestService } from '../../../support/relays.ts'

/** Without a worker, so that sessions keep the state that the test writes. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

interface Single {
  readonly session: { readonly reason: string; readonly detail: string | null }
}
interface Page {
  readonly sessions: readonly Single['session'][]
}

test.each([...provisioningDetails, null])('the owner and operators see the detail %s', async (detail) => {
  const user = await service.user()
  const { session_id } = (await user.start()).body.session
  await writeProvisionFailed(service.api.sql, session_id, detail)
  const { api } = service
  const [stopped, docked, list, single, found, shown] = [
    (await user.stop({ session_id })).body.session,
    (await api.post<Single>('/relay/stop?view=dock', { session_id }, { bearer: user.bearer })).body.session,
    (await api.get<Page>('/relay/sessions', { bearer: user.bearer })).body.sessions[0],
    (await api.get<Single>(`/relay/sessions/${session_id}`, { bearer: user.bearer })).body.session,
    (await api.get<Page>(`/admin/sessions?user_id=${user.userId}`, { headers: operator })).body.sessions[0],
    (await api.get<Single>(`/admin/sessions/${session_id}`, { headers: operator })).body.session,
  ]
  for (const session of [stopped, docked, list, single, found, shown])
    expect(session).toMatchObject({ session_id, state: 'stopped', reason: 'provision_failed', detail })
})

test('a live session has no detail', async () => {
  const user = await service.user()
  await user.start()
  expect((await user.active()).session).toMatchObject({ state: 'provisioning', detail: null })
})
