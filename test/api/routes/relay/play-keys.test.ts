/** Play keys: who may have which, and what the relay of a session gets of them. */
import { createHash, createHmac } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { ownPlayKeysMax } from '../../../../domain/relay/play-keys.ts'
import { instanceSecret } from '../../../../providers/relay/instance-secrets.ts'
import { type Answer, statusAndCode, streamTokenOf } from '../../../support/api.ts'
import { writeActive } from '../../../support/relay-rows.ts'
import { type RelayUser, startService, type TestService } from '../../../support/relays.ts'
import { assignInstance, insertWarmInstance } from '../../../support/unbound-relays.ts'

const master = 'a master secret of relays for the tests of play keys'
let service: TestService
beforeAll(async () => {
  service = await startService({
    worker: false,
    variables: { SVC_RATE_LIMITS: 'relay_start=100,relay_history=1000', SVC_RELAY_AUTH_SECRET: master },
  })
})

interface PlayKey {
  readonly id: string
  readonly name: string
  readonly connection_id: string | null
  readonly kind: string
  readonly key: string
  readonly created_at: string
  readonly last_used_at: string | null
}
interface PlayKeys {
  readonly play_keys: readonly PlayKey[]
  readonly play_with_keys_only: boolean
}
interface Admission {
  readonly revision: number
  readonly stream_token: { readonly key: string; readonly hash: string }
  readonly token_plays: boolean
  readonly play_keys: readonly string[]
}

const read = async ({ bearer }: RelayUser) => (await service.api.get<PlayKeys>('/relay/play-keys', { bearer })).body
const list = async (user: RelayUser) => (await read(user)).play_keys
const create = ({ bearer }: RelayUser, body: object): Promise<Answer<PlayKey>> =>
  service.api.post('/relay/play-keys', body, { bearer })
const remove = ({ bearer }: RelayUser, id: string) => service.api.delete(`/relay/play-keys/${id}`, { bearer })
const setKeysOnly = ({ bearer }: RelayUser, isOn: boolean) =>
  service.api.post('/relay/play-access', { play_with_keys_only: isOn }, { bearer })
const sha256 = (key: string) => createHash('sha256').update(key).digest('base64url')

/** A session with a relay that reports as this version does. */
async function givenRelay(connectionId = 'default') {
  const user = await service.user()
  const { session_id: sessionId } = (await user.start({ connection_id: connectionId })).body.session
  const instanceId = await insertWarmInstance(service.api.sql)
  await assignInstance(service.api.sql, instanceId, sessionId)
  const headers = { 'X-Relay-Auth': instanceSecret(master, instanceId) }
  const report = async <Reply>(body: object) =>
    (await service.api.post<Reply>('/relay/health', { instance_id: instanceId, ...body }, { headers })).body
  const assigned = () =>
    report<{ assignment: { admission?: Admission; stream_token?: string } }>({
      session_id: null,
      admission_revision: null,
    })
  const bind = () => writeActive(service.api.sql, sessionId, instanceId)
  /** What the reply to a report with the session contains. */
  const admissionAfter = async (revision: number | null | undefined) => {
    const body = { session_id: sessionId, ...(revision === undefined ? {} : { admission_revision: revision }) }
    return (await report<{ admission?: Admission }>(body)).admission
  }
  return { user, sessionId, instanceId, report, assigned, bind, admissionAfter }
}

describe('a play key', () => {
  test('is created with a name, listed for its owner only, and deleted once', async () => {
    const [user, other] = [await service.user(), await service.user()]
    const { status, body } = await create(user, { name: ' Studio PC ' })
    expect([status, body]).toEqual([
      201,
      {
        id: expect.any(String),
        name: 'Studio PC',
        connection_id: null,
        kind: 'own',
        key: expect.stringMatching(/^[A-Za-z0-9_-]{22}$/),
        created_at: expect.any(String),
        last_used_at: null,
      },
    ])
    expect(await list(user)).toEqual([body])
    expect(await list(other)).toEqual([])
    expect(statusAndCode(await remove(other, body.id))).toEqual([404, 'not_found'])
    expect((await remove(user, body.id)).status).toBe(204)
    expect(statusAndCode(await remove(user, body.id))).toEqual([404, 'not_found'])
  })

  test.each([
    [{}, 'a missing name'],
    [{ name: '' }, 'an empty name'],
    [{ name: '   ' }, 'a blank name'],
    [{ name: 'n'.repeat(65) }, 'a name of 65 characters'],
    [{ name: 'PC', connection_id: 'not a name' }, 'an invalid connection'],
  ])('is refused with %j: %s', async (body: object, _) => {
    const user = await service.user()
    expect(statusAndCode(await create(user, body))).toEqual([400, 'invalid_request'])
    expect(await list(user)).toEqual([])
  })

  test('is refused for a connection that the account does not have', async () => {
    const [user, other] = [await service.user(), await service.user()]
    await other.start({ connection_id: 'phone' })
    expect(statusAndCode(await create(user, { name: 'PC', connection_id: 'phone' }))).toEqual([404, 'not_found'])
    expect((await create(other, { name: 'PC', connection_id: 'phone' })).body.connection_id).toBe('phone')
  })

  test(`is refused beyond the ${ownPlayKeysMax}th, also of concurrent requests, and those of connections do not count`, async () => {
    const user = await service.user()
    await user.start()
    const answers = await Promise.all(
      Array.from({ length: ownPlayKeysMax + 5 }, (_, index) => create(user, { name: `key ${index}` })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(ownPlayKeysMax)
    for (const answer of answers.filter(({ status }) => status !== 201))
      expect(statusAndCode(answer)).toEqual([409, 'play_key_limit'])
    expect(await list(user)).toHaveLength(ownPlayKeysMax + 1)
  })

  test('is stored sealed, and neither its text nor an operator reveals it', async () => {
    const user = await service.user()
    const { key } = (await create(user, { name: 'Studio PC' })).body
    const [row] = await service.api.sql`select * from play_keys where user_id = ${user.userId}`
    expect(JSON.stringify(row)).not.toContain(key)
  })
})

describe('the address for players', () => {
  test('carries a play key of the connection, the same one for each session', async () => {
    const { user, sessionId, bind } = await givenRelay('phone')
    await bind()
    const { session } = await user.active()
    const [key] = await list(user)
    expect(key).toMatchObject({ kind: 'connection', connection_id: 'phone', name: 'phone' })
    expect(session?.session_id).toBe(sessionId)
    expect(session?.connect?.player_url).toContain(`?streamid=play/live/${key?.key}`)
    expect(session?.connect?.srt_url).toContain(`publish/live/${await streamTokenOf(service.api, user.userId)}`)
  })

  test('has another key as soon as that one is deleted', async () => {
    const { user, bind } = await givenRelay()
    await bind()
    const [before] = await list(user)
    expect((await remove(user, before?.id ?? '')).status).toBe(204)
    const [after, ...others] = await list(user)
    expect(others).toEqual([])
    expect(after?.key).not.toBe(before?.key)
    expect((await user.active()).session?.connect?.player_url).toContain(after?.key)
  })
})

describe('a relay', () => {
  test('gets hashes of the keys and of the stream token with its assignment, and nothing that admits', async () => {
    const { user, sessionId, assigned } = await givenRelay('phone')
    const forAll = (await create(user, { name: 'PC' })).body.key
    const ofConnection = (await create(user, { name: 'PC', connection_id: 'phone' })).body.key
    await user.start({ connection_id: 'camera' })
    const ofOther = (await create(user, { name: 'PC', connection_id: 'camera' })).body.key
    const token = await streamTokenOf(service.api, user.userId)
    const { assignment } = await assigned()
    const { admission } = assignment
    expect(assignment.stream_token).toBeUndefined()
    expect(admission?.play_keys).toEqual(expect.arrayContaining([sha256(forAll), sha256(ofConnection)]))
    expect(admission?.play_keys).not.toContain(sha256(ofOther))
    const { key = '', hash } = admission?.stream_token ?? {}
    expect(createHmac('sha256', Buffer.from(key, 'base64url')).update(token).digest('base64url')).toBe(hash)
    for (const secret of [token, forAll, ofConnection]) expect(JSON.stringify(assignment)).not.toContain(secret)
    expect(sessionId).toBeDefined()
  })

  test('of a former version gets the stream token', async () => {
    const { user, report } = await givenRelay()
    const { assignment } = await report<{ assignment: object }>({ session_id: null })
    expect(assignment).toMatchObject({ stream_token: await streamTokenOf(service.api, user.userId) })
    expect(assignment).not.toHaveProperty('admission')
  })

  test('gets the present keys with the report after each change, and no others', async () => {
    const { user, bind, admissionAfter } = await givenRelay()
    await bind()
    const first = await admissionAfter(null)
    expect(first?.play_keys).toHaveLength(1)
    expect(await admissionAfter(first?.revision)).toBeUndefined()
    expect(await admissionAfter(undefined)).toBeUndefined()

    const { id, key } = (await create(user, { name: 'PC' })).body
    const second = await admissionAfter(first?.revision)
    expect(second?.play_keys).toContain(sha256(key))
    await setKeysOnly(user, true)
    const third = await admissionAfter(second?.revision)
    expect(third?.token_plays).toBe(false)
    await remove(user, id)
    const fourth = await admissionAfter(third?.revision)
    expect(fourth?.play_keys).not.toContain(sha256(key))
    expect(await admissionAfter(fourth?.revision)).toBeUndefined()
  })

  test('that holds a report open gets a new key at once', async () => {
    const { user, sessionId, bind, report, admissionAfter } = await givenRelay()
    await bind()
    const revision = (await admissionAfter(null))?.revision
    const held = report<{ report_in_seconds: number }>({
      session_id: sessionId,
      admission_revision: revision,
      wait_seconds: 10,
    })
    const { key } = (await create(user, { name: 'PC' })).body
    // At the end of its wait, 10 s later, the test would have failed.
    expect((await held).report_in_seconds).toBe(0)
    expect((await admissionAfter(revision))?.play_keys).toContain(sha256(key))
  }, 5_000)

  test('goes on as it is when another relay of the account starts', async () => {
    const { user, bind, admissionAfter } = await givenRelay()
    await bind()
    const revision = (await admissionAfter(null))?.revision
    await user.start({ connection_id: 'other' })
    expect(await admissionAfter(revision)).toBeUndefined()
  })

  test('gets the key that takes the place of a deleted one of its connection', async () => {
    const { user, bind, admissionAfter } = await givenRelay()
    await bind()
    const revision = (await admissionAfter(null))?.revision
    const [deleted] = await list(user)
    await remove(user, deleted?.id ?? '')
    const [replacing] = await list(user)
    expect((await admissionAfter(revision))?.play_keys).toEqual([sha256(replacing?.key ?? '')])
    expect(replacing?.key).not.toBe(deleted?.key)
  })

  test('states which keys were used, and their owner sees when', async () => {
    const { user, sessionId, bind, report } = await givenRelay()
    const [used, unused] = [(await create(user, { name: 'used' })).body, (await create(user, { name: 'unused' })).body]
    await bind()
    await report({ session_id: sessionId, used_play_keys: [sha256(used.key), sha256('of another account')] })
    const keys = await list(user)
    expect(keys.find(({ id }) => id === used.id)?.last_used_at).not.toBeNull()
    expect(keys.find(({ id }) => id === unused.id)?.last_used_at).toBeNull()
  })
})

test('players need a key only for an account that has chosen so, and both is shown', async () => {
  const user = await service.user()
  expect((await read(user)).play_with_keys_only).toBe(false)
  expect((await setKeysOnly(user, true)).status).toBe(200)
  expect((await read(user)).play_with_keys_only).toBe(true)
  await setKeysOnly(user, true)
  await setKeysOnly(user, false)
  const actions = await service.api.sql`select action from audit_entries where user_id = ${user.userId} order by id`
  expect(actions.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['play_with_keys_only_enabled', 'play_with_keys_only_disabled']),
  )
  expect(actions.filter(({ action }) => action === 'play_with_keys_only_enabled')).toHaveLength(1)
})

test('a deleted connection takes its keys along', async () => {
  const user = await service.user()
  const { session_id } = (await user.start({ connection_id: 'phone' })).body.session
  await create(user, { name: 'PC', connection_id: 'phone' })
  await create(user, { name: 'for all' })
  await service.api.sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
      pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null where id = ${session_id}`
  expect((await service.api.delete('/relay/connections/phone', { bearer: user.bearer })).status).toBe(204)
  expect((await list(user)).map(({ name }) => name)).toEqual(['for all'])
})
