/** Who gave which command of a session. */
import { expect, test } from 'vitest'
import { listCommands } from '../../../db/relay/commands.ts'
import { appVariables, connectApp } from '../../support/apps.ts'
import { startFakeRelayService } from '../../support/fake-relays.ts'
import { operator, type RelayUser } from '../../support/relays.ts'
import { longRelayTimeouts } from '../../support/subscribers.ts'

const service = await startFakeRelayService({ variables: { ...longRelayTimeouts, ...(await appVariables()) } })
const { api } = service

const commandsOf = async (id: string) =>
  (await listCommands(api.sql, id)).map(({ command, initiator, client, publicReason }) => [
    command,
    initiator,
    client,
    publicReason,
  ])

const start = (bearer: string, key = crypto.randomUUID()) =>
  api.post<{ session: { session_id: string } }>('/relay/start', {}, { bearer, headers: { 'Idempotency-Key': key } })
const stop = (bearer: string, id: string) => api.post('/relay/stop', { session_id: id }, { bearer })

/** The bearers of the owner on the site, of the owner's plugin, and of an app. */
async function givenClients(user: RelayUser) {
  const plugin = await api.given.signIn(user, 'Deck of Ada')
  const app = await connectApp(api, user.bearer, 'obs-relay-control')
  return { plugin: plugin.bearer, app: app.access_token }
}

test('the commands of a session are kept with who gave them, and an app or a plugin with its name', async () => {
  const user = await service.user()
  const { plugin, app } = await givenClients(user)
  const { session_id: id } = await service.startActiveRelay(user)
  await stop(plugin, id)
  await start(app)
  // A start of a relay that is to run changes nothing.
  await start(plugin)
  await stop(user.bearer, id)
  await start(user.bearer)
  const ending = { reason: 'internal', public_reason: 'Music that was reported.' }
  await api.post(`/admin/sessions/${id}/disconnect`, ending, { headers: operator })
  expect(await commandsOf(id)).toEqual([
    ['run', 'user', null, null],
    ['stop', 'user', 'Deck of Ada', null],
    ['run', 'user', 'OBS script', null],
    ['stop', 'user', null, null],
    ['run', 'user', null, null],
    ['disconnect', 'operator', null, 'Music that was reported.'],
  ])
})

test('the first command of a session is that of the plugin or app that started it', async () => {
  const user = await service.user()
  const { plugin, app } = await givenClients(user)
  for (const [bearer, name] of [
    [plugin, 'Deck of Ada'],
    [app, 'OBS script'],
  ] as const) {
    const { session_id: id } = (await start(bearer)).body.session
    expect(await commandsOf(id)).toEqual([['run', 'user', name, null]])
    await api.post('/relay/stop', { session_id: id, immediate: true }, { bearer })
    expect((await commandsOf(id))[1]).toEqual(['stop_now', 'user', name, null])
  }
})

test('a disconnect of all relays of an account, and a resumption by an operator, are kept too', async () => {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  const transition = (to: string) => api.post(`/admin/sessions/${id}/transition`, { to }, { headers: operator })
  await stop(user.bearer, id)
  expect((await transition('active')).status).toBe(200)
  await api.post(`/admin/users/${user.userId}/disable`, { disabled: true, reason: 'abuse' }, { headers: operator })
  expect(await commandsOf(id)).toEqual([
    ['run', 'user', null, null],
    ['stop', 'user', null, null],
    ['run', 'operator', null, null],
    ['disconnect', 'operator', null, null],
  ])
})

test('a session keeps its last thousand commands', async () => {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  await api.sql`
    insert into relay_commands (session_id, seq, command, initiator)
    select ${id}, seq, 'stop', 'user' from generate_series(2, 1500) seq`
  await api.sql`update relay_sessions set command_seq = 1500 where id = ${id}`
  await stop(user.bearer, id)
  const [row] = await api.sql`
    select min(seq) as first, max(seq) as last from relay_commands where session_id = ${id}`
  expect(row).toEqual({ first: 502, last: 1_501 })
})
