/** The reason of an operator's act is recorded in the audit, and hidden from the owner of the account. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { statusAndCode } from '../../../support/api.ts'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { operator } from '../../../support/relays.ts'

const service = await startFakeRelayService()
const { api } = service

const act = (path: string, body: object) => api.post(`/admin${path}`, body, { headers: operator })

const auditedReasons = async (action: string) =>
  (await api.sql`select detail ->> 'reason' as reason from audit_entries where action = ${action} order by id`).map(
    ({ reason }) => reason,
  )

/** An event in a status that can be dismissed. */
const parkedEvent = async (): Promise<string> => {
  const [row] = await api.sql`
    insert into billing_events (provider, event_key, type, status) values ('sandbox', ${randomUUID()}, 'test', 'parked')
    returning id`
  return row?.id as string
}

const acts: Readonly<Record<string, () => Promise<{ path: string; body?: object }>>> = {
  plan_granted: async () => ({ path: `/users/${(await service.user()).userId}/grant`, body: { plan_tier: 'paid' } }),
  relay_access_disabled: async () => ({
    path: `/users/${(await service.user()).userId}/relay-access`,
    body: { enabled: false },
  }),
  account_disabled: async () => ({ path: `/users/${(await service.user()).userId}/disable` }),
  billing_event_dismissed: async () => ({ path: `/billing/events/${await parkedEvent()}/dismiss` }),
  billing_event_replayed: async () => ({ path: `/billing/events/${await parkedEvent()}/replay` }),
  region_drained: async () => ({ path: '/regions/local/drain' }),
  region_resumed: async () => ({ path: '/regions/local/resume' }),
  session_transition_requested: async () => {
    const user = await service.user()
    const { session_id } = (await user.start()).body.session
    return { path: `/sessions/${session_id}/transition`, body: { to: 'stopped' } }
  },
}

test.each(Object.keys(acts))('%s is audited with its reason, and without one', async (action) => {
  const withReason = await acts[action]?.()
  const first = await act(withReason?.path ?? '', { ...withReason?.body, reason: `because of ${action}` })
  expect([first.status, await auditedReasons(action)]).toEqual([200, [`because of ${action}`]])
  const without = await acts[action]?.()
  const second = await act(without?.path ?? '', { ...without?.body })
  expect([second.status, await auditedReasons(action)]).toEqual([200, [`because of ${action}`, null]])
})

test.each(['', 'x'.repeat(501), 7])('a reason such as %s is refused', async (reason) => {
  const user = await service.user()
  const refused = await act(`/users/${user.userId}/disable`, { reason })
  expect(statusAndCode(refused)).toEqual([400, 'invalid_request'])
  expect((await act(`/users/${user.userId}/disable`, { reason: 'x'.repeat(500) })).status).toBe(200)
})

test('the owner of the account sees the act, and not its reason', async () => {
  const user = await service.user()
  await act(`/users/${user.userId}/grant`, { plan_tier: 'paid', reason: 'an internal note' })
  const { body } = await api.get<{ entries: { action: string }[] }>('/auth/audit', { bearer: user.bearer })
  expect(body.entries.map((entry) => entry.action)).toContain('plan_granted')
  expect(JSON.stringify(body)).not.toContain('an internal note')
})
