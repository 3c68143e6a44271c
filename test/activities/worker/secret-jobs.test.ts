/** The job that encrypts stored secrets again with the current key. */
import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { secretJobs } from '../../../activities/worker/secret-jobs.ts'
import { replaceEndpoint } from '../../../db/notifications/endpoints.ts'
import { openSessionToken, openStreamToken, sealSessionToken, sealStreamToken } from '../../../db/sealed-tokens.ts'
import { createEndpointStore } from '../../../db/transactions/record-endpoint-attempts.ts'
import { createLog } from '../../../platform/log.ts'
import { createSealing, type Sealing } from '../../../platform/sealing.ts'
import { tokenPlace } from '../../../providers/oauth/tokens.ts'
import { streamTokenOf } from '../../support/api.ts'
import { waitForBlockedQuery } from '../../support/locks.ts'
import { fetchUser, newProviderAccount } from '../../support/oauth-api.ts'
import { startGoogle } from '../../support/oauth-google.ts'
import { type RelayUser, startService } from '../../support/relays.ts'

const google = await startGoogle()
const service = await startService({ worker: false, variables: google.variables })
const { api } = service
const { sql } = api
const { sealing, config } = api.services
const logged: string[] = []
const log = createLog('worker', 'debug', { write: (line) => void logged.push(line) })

const newKey = () => ({ id: randomBytes(4).toString('hex'), key: randomBytes(32).toString('base64') })
const replacedKey = newKey()
const replaced = createSealing([replacedKey])
/** The key of the api, with one that it replaces. */
const rotating = createSealing([...config.oauthEncryptionKeys, replacedKey])

/** Runs the job once. */
const round = async (by: Sealing = rotating, signal?: AbortSignal): Promise<void> => {
  const [job] = secretJobs({ sql, log, sealing: by })
  await job?.run(signal)
}

/** A user with a live session and a connected chat. */
async function userWithSecrets(): Promise<RelayUser> {
  const user = await service.user()
  await user.start()
  const { body } = await api.post<{ authorization_url: string; binding: string }>(
    '/auth/oauth/google/start',
    { intent: 'link', scopes: 'chat' },
    { bearer: user.bearer },
  )
  google.account = newProviderAccount()
  const back = await google.visit(body.authorization_url)
  const linked = await api.post('/auth/oauth/google/callback', { ...back, binding: body.binding })
  expect(linked.body).toEqual({ status: 'linked' })
  return user
}

/** All decrypted tokens of a user. */
async function secretsOf({ userId }: RelayUser, by: Sealing = sealing) {
  const [user] = await sql<{ streamTokenSealed: string }[]>`
    select stream_token_sealed from users where id = ${userId}`
  const [session] = await sql<Parameters<typeof openSessionToken>[1][]>`
    select id, pair_token_sealed, relay_ws_token_sealed from relay_sessions
    where user_id = ${userId} and state <> 'stopped'`
  const [chat] = await sql<{ access: string; refresh: string }[]>`
    select access_token_sealed as access, refresh_token_sealed as refresh from user_oauth_accounts where user_id = ${userId}`
  if (!user || !session || !chat) throw new Error('the user lacks a row')
  return [
    openStreamToken(by, userId, user),
    openSessionToken(by, session, 'pair_token'),
    openSessionToken(by, session, 'relay_ws_token'),
    by.open(chat.access, tokenPlace(userId, 'google', 'access_token')).text,
    by.open(chat.refresh, tokenPlace(userId, 'google', 'refresh_token')).text,
  ]
}

/** Stores an account's stream token, and the two of its session, with the replaced key. */
async function sealWithReplacedKey({ userId }: RelayUser, [streamToken, pairToken, relayWsToken]: (string | null)[]) {
  const stream = sealStreamToken(replaced, userId, streamToken ?? '')
  await sql`
    update users set stream_token_sealed = ${stream.sealed}, stream_token_hash = ${stream.hash} where id = ${userId}`
  const [session] = await sql<{ id: string }[]>`
    select id from relay_sessions where user_id = ${userId} and state <> 'stopped'`
  const pair = sealSessionToken(replaced, session?.id ?? '', 'pair_token', pairToken ?? '')
  const socket = sealSessionToken(replaced, session?.id ?? '', 'relay_ws_token', relayWsToken ?? '')
  await sql`
    update relay_sessions set pair_token_sealed = ${pair.sealed}, pair_token_hash = ${pair.hash},
      relay_ws_token_sealed = ${socket.sealed}, relay_ws_token_hash = ${socket.hash}
    where id = ${session?.id ?? ''}`
}

/** Accounts with a stream token of the replaced key, named by their prefix and number. */
async function insertAccounts(prefix: string, count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => {
    const id = randomUUID()
    const token = sealStreamToken(replaced, id, `${prefix}${String(index + 1).padStart(7, '0')}`)
    const stored = { stream_token_sealed: token.sealed, stream_token_hash: token.hash }
    return { id, email: `${prefix}-${index + 1}@example.com`, ...stored }
  })
  await sql`insert into users ${sql(rows)}`
}

const countAccountsOf = async (key: Sealing): Promise<number> =>
  (await sql`select from users where split_part(stream_token_sealed, '.', 2) = ${key.keyId}`).count

const rowsOf = ({ userId }: RelayUser) => sql`
  select u.stream_token_sealed, u.stream_token_hash, s.pair_token_sealed, s.pair_token_hash,
    s.relay_ws_token_sealed, s.relay_ws_token_hash, a.access_token_sealed, a.refresh_token_sealed
  from users u join relay_sessions s on s.user_id = u.id join user_oauth_accounts a on a.user_id = u.id
  where u.id = ${userId}`

test('tokens of a replaced key are sealed with the present one, hash included, and returned unchanged', async () => {
  const user = await userWithSecrets()
  const secrets = await secretsOf(user)
  await sealWithReplacedKey(user, secrets)
  await round()
  const [row] = await rowsOf(user)
  const [streamToken, pairToken, relayWsToken] = secrets
  expect(row?.streamTokenHash).toEqual(sealing.hash(streamToken ?? '', 'stream_token'))
  expect(row?.pairTokenHash).toEqual(sealing.hash(pairToken ?? '', 'pair_token'))
  expect(row?.relayWsTokenHash).toEqual(sealing.hash(relayWsToken ?? '', 'relay_ws_token'))
  expect(await secretsOf(user)).toEqual(secrets)
  const { session } = await user.active()
  expect([(await fetchUser(api, user.bearer)).stream_token, session?.pair_token, session?.relay_ws_token]).toEqual(
    secrets.slice(0, 3),
  )
})

test('a run changes nothing when everything is sealed with the current key', async () => {
  const user = await userWithSecrets()
  await round()
  const before = await rowsOf(user)
  await round()
  expect(await rowsOf(user)).toEqual(before)
})

test('after a run the replaced key is not needed any more', async () => {
  const users = [await userWithSecrets(), await userWithSecrets()]
  const before = await Promise.all(users.map((user) => secretsOf(user)))
  const added = newKey()
  await round(createSealing([added, ...config.oauthEncryptionKeys]))
  const onlyNew = createSealing([added])
  expect(await Promise.all(users.map((user) => secretsOf(user, onlyNew)))).toEqual(before)
  const [row] = await rowsOf(users[0] as RelayUser)
  expect(row?.streamTokenHash).toEqual(onlyNew.hash(String(before[0]?.[0]), 'stream_token'))
  // Returns to the previous key.
  await round(createSealing([...config.oauthEncryptionKeys, added]))
  expect(await Promise.all(users.map((user) => secretsOf(user)))).toEqual(before)
})

test('after a run endpoints and messages to them need no replaced key', async () => {
  const [user, other] = [await service.user(), await service.user()]
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const webhook = { type: 'webhook', url: 'https://93.184.216.34/hook', secret } as const
  const discord = { type: 'discord', url: 'https://discord.com/api/webhooks/1/a', secret: null } as const
  await replaceEndpoint(sql, sealing, user.userId, webhook)
  await replaceEndpoint(sql, sealing, other.userId, discord)
  const added = newKey()
  await round(createSealing([added, ...config.oauthEncryptionKeys]))
  const onlyNew = createEndpointStore(sql, createSealing([added]))
  expect(await onlyNew.find(user.userId)).toMatchObject(webhook)
  expect(await onlyNew.find(other.userId)).toMatchObject(discord)
  // Returns to the previous key.
  await round(createSealing([...config.oauthEncryptionKeys, added]))
  expect(await createEndpointStore(sql, sealing).find(user.userId)).toMatchObject(webhook)
})

test('many accounts are sealed in one run', async () => {
  await insertAccounts('P', 950)
  await round()
  expect(await countAccountsOf(replaced)).toBe(0)
  const [row] = await sql<{ id: string }[]>`select id from users where email = 'P-950@example.com'`
  expect(await streamTokenOf(api, row?.id ?? '')).toBe('P0000950')
})

test('a row that no key decrypts is unchanged, does not stop the others, and fails the run', async () => {
  const [broken, well] = [await userWithSecrets(), await userWithSecrets()]
  const gone = sealStreamToken(createSealing([{ ...newKey(), id: 'gone' }]), broken.userId, 'Ab12Cd34')
  await sql`
    update users set stream_token_sealed = ${gone.sealed}, stream_token_hash = ${gone.hash} where id = ${broken.userId}`
  const secrets = await secretsOf(well)
  await sealWithReplacedKey(well, secrets)
  await expect(round()).rejects.toThrow('1 rows could not be sealed')
  const [row] = await rowsOf(broken)
  expect(row?.streamTokenSealed).toBe(gone.sealed)
  const [other] = await rowsOf(well)
  expect(other?.streamTokenHash).toEqual(sealing.hash(secrets[0] ?? '', 'stream_token'))
  expect(other?.pairTokenHash).toEqual(sealing.hash(secrets[1] ?? '', 'pair_token'))
  expect(logged.join('')).toContain('sealed with the key gone')
  expect(logged.join('')).toContain(broken.userId)
  await sql`delete from users where id = ${broken.userId}`
  await round()
})

test('a token that is replaced while the job seals it keeps its new value', async () => {
  const user = await userWithSecrets()
  await sealWithReplacedKey(user, await secretsOf(user))
  const next = sealStreamToken(sealing, user.userId, 'Ab12Cd34')
  const { running } = await sql.begin(async (tx) => {
    await tx`
      update users set stream_token_sealed = ${next.sealed}, stream_token_hash = ${next.hash}
      where id = ${user.userId}`
    const running = round()
    await waitForBlockedQuery(sql, tx)
    return { running }
  })
  await running
  expect(await streamTokenOf(api, user.userId)).toBe('Ab12Cd34')
})

test('a session that stops during the run keeps no token', async () => {
  const user = await userWithSecrets()
  await sealWithReplacedKey(user, await secretsOf(user))
  await sql`
    update relay_sessions set state = 'stopped', reason = 'stop_requested', stopped_at = now(),
      pair_token_sealed = null, pair_token_hash = null, relay_ws_token_sealed = null, relay_ws_token_hash = null
    where user_id = ${user.userId}`
  await round()
  expect((await rowsOf(user))[0]).toMatchObject({ pairTokenSealed: null, relayWsTokenSealed: null })
})

test('a run that is interrupted by a stopping worker fails, and the next run continues', async () => {
  await insertAccounts('Q', 450)
  await expect(round(rotating, AbortSignal.abort())).rejects.toThrow('the next run continues')
  expect(await countAccountsOf(replaced)).toBeGreaterThan(0)
  await round()
  expect(await countAccountsOf(replaced)).toBe(0)
})

test('neither the log nor an error contains a token', async () => {
  const user = await userWithSecrets()
  const secrets = await secretsOf(user)
  await sealWithReplacedKey(user, secrets)
  await sql`update users set stream_token_sealed = 'v1.x.y', stream_token_hash = ${randomBytes(32)} where id = ${user.userId}`
  const error = await round().catch(String)
  for (const secret of secrets) expect(logged.join('') + error).not.toContain(secret)
  await sql`delete from users where id = ${user.userId}`
})
