/** Migration of a database from before secrets were encrypted and provider-verified addresses were stored. */
import { randomBytes } from 'node:crypto'
import { expect, onTestFinished, test } from 'vitest'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { migrate, readMigrations } from '../../db/migrations.ts'
import { createEmptyDatabase } from '../support/api.ts'
import { createFakeRelays } from '../support/fake-relay-provider.ts'
import { fetchUser } from '../support/oauth-api.ts'
import { eventually, startService } from '../support/relays.ts'

async function databaseBefore(): Promise<{ sql: Database; url: string }> {
  const database = await createEmptyDatabase()
  const sql = connectPostgres(database.url, 1)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  for (const { name, text } of await readMigrations()) if (name < '0008') await sql.unsafe(text)
  return { sql, url: database.url }
}

const linkedAt = new Date('2026-10-01T12:00:00.123Z')
const later = new Date('2026-10-02T12:00:00Z')

interface Before {
  readonly email: string | null
  readonly openedAt?: Date
  readonly verifiedAt: Date | null
  readonly streamToken?: string
}

/** An account with an identity at Twitch, by its id. */
async function addAccount(sql: Database, { email, openedAt = linkedAt, verifiedAt, streamToken }: Before) {
  const [row] = await sql<{ id: string }[]>`
    insert into users (email, created_at, email_verified_at, stream_token)
    values (${email}, ${openedAt}, ${verifiedAt}, ${streamToken ?? randomBytes(4).toString('hex')}) returning id`
  const id = row?.id ?? ''
  await sql`
    insert into user_oauth_accounts (user_id, provider, provider_user_id, linked_at) values (${id}, 'twitch', ${id}, ${linkedAt})`
  return id
}

test('only identities that verified the address when they were linked, or that were merged, get the verified address', async () => {
  const { sql } = await databaseBefore()
  await addAccount(sql, { email: 'verified-by-the-link@example.com', verifiedAt: linkedAt })
  await addAccount(sql, { email: 'verified-by-mail@example.com', verifiedAt: later })
  await addAccount(sql, { email: 'unverified@example.com', verifiedAt: null })
  await addAccount(sql, { email: null, verifiedAt: null })
  const merged = await addAccount(sql, { email: 'merged@example.com', verifiedAt: later })
  const mergedOther = await addAccount(sql, { email: 'merged-another-provider@example.com', verifiedAt: later })
  for (const [id, provider] of [
    [merged, 'twitch'],
    [mergedOther, 'google'],
  ] as const)
    await sql`
      insert into audit_entries (at, actor, action, user_id, detail)
      values (${linkedAt}, 'user', 'merge_confirmed', ${id}, ${sql.json({ provider, method: 'password' })})`

  await migrate(sql)

  const verified =
    await sql`select provider_verified_email from user_oauth_accounts where provider_verified_email is not null order by 1`
  expect(verified.map((row) => row.providerVerifiedEmail)).toEqual([
    'merged@example.com',
    'verified-by-the-link@example.com',
  ])
})

test('ownership is proved for accounts created with a verified address, not for those verified later', async () => {
  const { sql } = await databaseBefore()
  await addAccount(sql, { email: 'through-a-provider@example.com', openedAt: linkedAt, verifiedAt: linkedAt })
  await addAccount(sql, { email: 'verified-later@example.com', verifiedAt: later })
  await addAccount(sql, { email: 'unverified@example.com', verifiedAt: null })
  await migrate(sql)
  const proved = await sql`select email, owner_proved_at from users where owner_proved_at is not null`
  expect(proved).toEqual([{ email: 'through-a-provider@example.com', ownerProvedAt: linkedAt }])
})

test('stream tokens and tokens of live sessions keep their values while they are encrypted, and the relay starts with them', async () => {
  const { sql, url } = await databaseBefore()
  const userId = await addAccount(sql, { email: 'streamer@example.com', verifiedAt: null, streamToken: 'Ab12Cd34' })
  await sql`
    insert into relay_sessions (user_id, connection_id, region, command_actor, pair_token, relay_ws_token)
    values (${userId}, 'default', 'local', 'user', 'the pair token', 'the token of the socket')`
  const streamTokens: string[] = []
  const relays = createFakeRelays()
  const { api } = await startService({
    variables: { DATABASE_URL: url },
    around: () => ({
      ...relays,
      create: async (spec, signal) => {
        streamTokens.push(spec.streamToken ?? '')
        return relays.create(spec, signal)
      },
    }),
  })
  const user = { userId, email: 'streamer@example.com', password: '', authSessionId: '', bearer: '', refreshToken: '' }
  const { bearer } = await api.given.signIn(user)
  const expectTheSame = async () => {
    expect(await fetchUser(api, bearer)).toMatchObject({ stream_token: 'Ab12Cd34' })
    const { body } = await api.get('/relay/active', { bearer })
    expect(body).toMatchObject({ session: { pair_token: 'the pair token', relay_ws_token: 'the token of the socket' } })
  }
  await expectTheSame()
  const inPlainText = () => sql`
    select from users where stream_token is not null
    union all select from relay_sessions where pair_token is not null or relay_ws_token is not null`
  await eventually(inPlainText, (rows) => rows.length === 0)
  await expectTheSame()
  await eventually(
    () => streamTokens,
    ([first]) => first === 'Ab12Cd34',
  )
})
