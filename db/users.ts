/** Accounts: who may sign in. */
import { randomUUID } from 'node:crypto'
import type { Sealing } from '../platform/sealing.ts'
import { first, type Sql } from './connection.ts'
import { type StoredStreamToken, sealStreamToken, streamTokenHashes } from './sealed-tokens.ts'

export interface Credentials {
  readonly userId: string
  /** Null for an account that signs in by other means only. */
  readonly passwordHash: string | null
  readonly emailVerified: boolean
  readonly disabled: boolean
}

/** How the account with this address signs in, without regard to the address's case. */
export const credentialsByEmail = async (sql: Sql, email: string): Promise<Credentials | undefined> =>
  first(
    await sql<Credentials[]>`
      select id as user_id, password_hash,
        email_verified_at is not null as email_verified, disabled_at is not null as "disabled"
      from users where lower(email) = lower(${email})`,
  )

/** The same by id, and nobody can disable the account or change its password until the transaction ends. */
export const lockCredentials = async (sql: Sql, userId: string): Promise<Credentials | undefined> =>
  first(
    await sql<Credentials[]>`
      select id as user_id, password_hash,
        email_verified_at is not null as email_verified, disabled_at is not null as "disabled"
      from users where id = ${userId} for share`,
  )

/** Adds an account and answers its id, or nothing when its address or its stream token is taken. */
export const insertUser = async (
  sql: Sql,
  sealing: Sealing,
  { email, passwordHash, streamToken }: { email: string; passwordHash: string; streamToken: string },
): Promise<string | undefined> => {
  const { id, token, isTaken } = newAccount(sql, sealing, streamToken)
  return first(
    await sql<{ id: string }[]>`
      insert into users (id, email, password_hash, stream_token_sealed, stream_token_hash)
      select ${id}, ${email}, ${passwordHash}, ${token.sealed}, ${token.hash} where not ${isTaken}
      on conflict do nothing returning id`,
  )?.id
}

/**
 * Adds an account that signs in through a provider and answers its id, or nothing when its address or stream token is taken.
 * @param email one that the provider vouches for, so it counts as verified and as its owner's; null when it vouches for none.
 */
export const insertUserOfProvider = async (
  sql: Sql,
  sealing: Sealing,
  { email, streamToken }: { email: string | null; streamToken: string },
): Promise<string | undefined> => {
  const { id, token, isTaken } = newAccount(sql, sealing, streamToken)
  return first(
    await sql<{ id: string }[]>`
      insert into users (id, email, email_verified_at, owner_proved_at, stream_token_sealed, stream_token_hash)
      select ${id}, ${email}, vouched_at, vouched_at, ${token.sealed}, ${token.hash}
      from (select case when ${email}::text is not null then now() end as vouched_at) vouched where not ${isTaken}
      on conflict do nothing returning id`,
  )?.id
}

/** An id, so that the token can be sealed for it, and whether another account has the token: by any key, or in plain text. */
function newAccount(sql: Sql, sealing: Sealing, streamToken: string) {
  const id = randomUUID()
  // As hexadecimal text: the driver takes an array of buffers for a single one.
  const hashes = streamTokenHashes(sealing, streamToken).map((hash) => hash.toString('hex'))
  const isTaken = sql`exists (
    select from users
    where stream_token_hash in (select decode(hash, 'hex') from unnest(${hashes}::text[]) hash) or stream_token = ${streamToken})`
  return { id, token: sealStreamToken(sealing, id, streamToken), isTaken }
}

/** The account's address is this one, in any case, and is verified. */
export const hasVerifiedEmail = async (sql: Sql, userId: string, email: string): Promise<boolean> =>
  first(
    await sql`
      select from users where id = ${userId} and lower(email) = lower(${email}) and email_verified_at is not null`,
  ) !== undefined

/** A provider vouches for this address: if it is the account's own, that is verified from now on. */
export const verifyEmailIfOwn = async (sql: Sql, userId: string, vouched: string): Promise<void> => {
  await sql`
    update users set email_verified_at = now()
    where id = ${userId} and lower(email) = lower(${vouched}) and email_verified_at is null`
}

/** The account is entered by other means than a password from now on. */
export const dropPassword = async (sql: Sql, userId: string): Promise<void> => {
  await sql`update users set password_hash = null where id = ${userId}`
}

/** The account's stream token as it is stored. Throws for an unknown account. */
export async function storedStreamToken(sql: Sql, userId: string): Promise<StoredStreamToken> {
  const row = first(
    await sql<StoredStreamToken[]>`select stream_token, stream_token_sealed from users where id = ${userId}`,
  )
  if (!row) throw new Error('the account is gone')
  return row
}

/**
 * Holds the account for whoever is about to change what it may do: until the transaction ends nobody else changes it, signs
 * in to it or starts a relay on it. Answers whether it exists.
 */
export const lockUser = async (sql: Sql, userId: string): Promise<boolean> =>
  (await sql`select from users where id = ${userId} for no key update`).length === 1

/** The same for the account with this address, without regard to its case. Answers its id. */
export const lockUserByEmail = async (sql: Sql, email: string): Promise<string | undefined> =>
  first(await sql<{ id: string }[]>`select id from users where lower(email) = lower(${email}) for no key update`)?.id

export const setPassword = async (sql: Sql, userId: string, passwordHash: string): Promise<void> => {
  await sql`update users set password_hash = ${passwordHash} where id = ${userId}`
}

/** Disables the account, or lets it in again. One that is disabled keeps the time when it was first. */
export const setDisabled = async (sql: Sql, userId: string, disabled: boolean): Promise<void> => {
  await sql`update users set disabled_at = case when ${disabled} then coalesce(disabled_at, now()) end where id = ${userId}`
}

/** An operator's word on whether the account may use relays, whatever its plan. */
export const setRelayAccess = async (sql: Sql, userId: string, enabled: boolean): Promise<void> => {
  await sql`update users set relay_access_enabled = ${enabled} where id = ${userId}`
}
