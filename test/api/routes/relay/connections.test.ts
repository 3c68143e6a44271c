/** The connections of an account: what they are made of, and when they can be deleted. */
import { beforeAll, describe, expect, test } from 'vitest'
import { connectionsMax } from '../../../../domain/relay/connections.ts'
import { statusAndCode } from '../../../support/api.ts'
import { eventually, type RelayUser, startService, type TestService } from '../../../support/relays.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false, variables: { SVC_RATE_LIMITS: 'relay_start=100' } })
})

interface Connections {
  readonly connections: readonly { readonly name: string; readonly session_id: string | null }[]
}

const list = async ({ bearer }: RelayUser) =>
  (await service.api.get<Connections>('/relay/connections', { bearer })).body.connections
const remove = ({ bearer }: RelayUser, name: string) => service.api.delete(`/relay/connections/${name}`, { bearer })
const end = (sessionId: string) => service.api.sql`
  update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
    pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null where id = ${sessionId}`

describe('a connection', () => {
  test('is made by the first start of a relay for its name, and listed with its live session', async () => {
    const user = await service.user()
    expect(await list(user)).toEqual([])
    const { session_id } = (await user.start({ connection_id: 'phone' })).body.session
    expect(await list(user)).toEqual([
      {
        name: 'phone',
        session_id,
        created_at: expect.any(String),
        last_used_at: expect.any(String),
        on_loss: 'freeze',
        slate: null,
      },
    ])
  })

  test('cannot be deleted while it has a live session, nor by another account', async () => {
    const [user, other] = [await service.user(), await service.user()]
    const { session_id } = (await user.start({ connection_id: 'phone' })).body.session
    expect(statusAndCode(await remove(user, 'phone'))).toEqual([409, 'connection_in_use'])
    expect(statusAndCode(await remove(other, 'phone'))).toEqual([404, 'not_found'])
    await end(session_id)
    expect((await remove(user, 'phone')).status).toBe(204)
    expect(statusAndCode(await remove(user, 'phone'))).toEqual([404, 'not_found'])
    expect(await list(user)).toEqual([])
  })

  test('that was deleted keeps its label from other accounts, and leaves its name and its ports', async () => {
    const user = await service.user()
    await end((await user.start({ connection_id: 'camera' })).body.session.session_id)
    await remove(user, 'camera')
    expect(await service.api.sql`select name, srtla_port from connections where user_id = ${user.userId}`).toEqual([
      { name: null, srtlaPort: null },
    ])
    await user.start({ connection_id: 'camera' })
    const labels = await service.api.sql<{ label: string }[]>`
      select label from connections where user_id = ${user.userId}`
    expect(new Set(labels.map(({ label }) => label)).size).toBe(2)
    for (const { label } of labels) expect(label).toMatch(/^[a-z]{10}$/)
  })
})

test('an account has at most fifty connections, and starts relays for those it has', async () => {
  const user = await service.user()
  await service.api.sql`
    insert into connections (user_id, name) select ${user.userId}, 'c' || n from generate_series(1, ${connectionsMax}) n`
  expect(statusAndCode(await user.start({ connection_id: 'new' }))).toEqual([409, 'connection_limit'])
  expect(await service.api.sql`select from relay_sessions where user_id = ${user.userId}`).toHaveLength(0)
  expect((await user.start({ connection_id: 'c1' })).status).toBe(201)
  await eventually(
    () => list(user),
    ([first]) => first?.name === 'c1',
  )
})
