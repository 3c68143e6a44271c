/** Stored forms of stream tokens and session tokens. */
import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createStreamToken } from '../../api/identity/stream-tokens.ts'
import { insertUser, insertUserFromProvider } from '../../db/identity/users.ts'
import { sealSessionToken, sealStreamToken } from '../../db/sealed-tokens.ts'
import { createSealing } from '../../platform/sealing.ts'
import { streamTokenOf } from '../support/api.ts'
import { startService } from '../support/relays.ts'

const { api, user: givenUser } = await startService({ worker: false })
const { sql } = api
const { sealing, config } = api.services

/** Every row of every table, as text. */
async function allRows(): Promise<string> {
  const tables = await sql`select tablename from pg_tables where schemaname = 'public'`
  const texts = await Promise.all(
    tables.map(async ({ tablename }) =>
      (await sql<{ text: string }[]>`select t::text as text from ${sql(tablename)} t`).map((row) => row.text),
    ),
  )
  return texts.flat().join('\n')
}

test('no row contains a stream token or session token in plain text, or an unkeyed hash of one', async () => {
  const user = await givenUser()
  const { session } = (await user.start()).body
  const tokens = [await streamTokenOf(api, user.userId), session.pair_token ?? '', session.relay_ws_token ?? '']
  const rows = await allRows()
  expect(rows).toContain(session.session_id)
  for (const token of tokens) {
    expect(token).toMatch(/^[\w-]{8,32}$/)
    expect(rows).not.toContain(token)
    const [found] = await sql`
      select from users, relay_sessions where sha256(convert_to(${token}, 'UTF8')) in (stream_token_hash, pair_token_hash, relay_ws_token_hash)`
    expect(found).toBeUndefined()
  }
})

test('a session token is found by its keyed hash, including hashes under keys that are being replaced', async () => {
  const user = await givenUser()
  const { session } = (await user.start()).body
  const added = { id: 'new', key: randomBytes(32).toString('base64') }
  for (const by of [sealing, createSealing([added, ...config.oauthEncryptionKeys])]) {
    const inHex = (field: 'pair_token' | 'relay_ws_token') =>
      by.hashes(session[field] ?? '', field).map((hash) => hash.toString('hex'))
    const rows = await sql`
      select id from relay_sessions
      where encode(pair_token_hash, 'hex') = any(${inHex('pair_token')}::text[])
        and encode(relay_ws_token_hash, 'hex') = any(${inHex('relay_ws_token')}::text[])`
    expect(rows).toEqual([{ id: session.session_id }])
  }
})

test('a sealed token that is copied to another row cannot be decrypted', async () => {
  const [first, second] = [await givenUser(), await givenUser()]
  const moved = await sql<
    { sealed: string }[]
  >`select stream_token_sealed as sealed from users where id = ${first.userId}`
  const { hash } = sealStreamToken(sealing, second.userId, createStreamToken())
  await sql`
    update users set stream_token_sealed = ${moved[0]?.sealed ?? ''}, stream_token_hash = ${hash} where id = ${second.userId}`
  await expect(streamTokenOf(api, second.userId)).rejects.toThrow()
  expect((await api.get('/auth/session', { bearer: second.bearer })).status).toBe(500)
  expect((await api.get('/auth/session?view=dock', { bearer: second.bearer })).status).toBe(200)
})

test('two accounts cannot have the same stream token, even during a key rotation', async () => {
  const streamToken = createStreamToken()
  const rotated = createSealing([{ id: 'new', key: randomBytes(32).toString('base64') }, ...config.oauthEncryptionKeys])
  const add = (by = sealing) =>
    insertUser(sql, by, { email: `${randomUUID()}@example.com`, passwordHash: 'x', streamToken })
  expect(await add()).toBeDefined()
  expect([
    await add(),
    await add(rotated),
    await insertUserFromProvider(sql, rotated, { email: null, streamToken }),
  ]).toEqual([undefined, undefined, undefined])
  const tokens = await Promise.all(Array.from({ length: 5 }, () => add(sealing)))
  expect(tokens.filter((id) => id !== undefined)).toEqual([])
})

test('of concurrent new accounts with the same stream token one is created', async () => {
  const streamToken = createStreamToken()
  const added = await Promise.all(
    Array.from({ length: 8 }, () => insertUserFromProvider(sql, sealing, { email: null, streamToken })),
  )
  expect(added.filter((id) => id !== undefined)).toHaveLength(1)
})

test('a stopped session keeps no token, neither sealed nor as a hash', async () => {
  const user = await givenUser()
  const { session_id: id } = (await user.start()).body.session
  const { sealed } = sealSessionToken(sealing, id, 'pair_token', 'token')
  await sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(), pair_token_sealed = null,
      pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null
    where id = ${id}`
  for (const column of ['pair_token_sealed', 'relay_ws_token_sealed']) {
    const written = sql`update relay_sessions set ${sql({ [column]: sealed })} where id = ${id}`
    await expect(written).rejects.toMatchObject({ code: '23514' })
  }
})
