/** Accounts: who may sign in. */
import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import { maskAccountEmail } from '../../domain/identity/masked-email.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { first, firstValue, hasRow, type Sql } from '../connection.ts'
import { type StoredStreamToken, sealStreamToken, streamTokenHashes } from '../sealed-tokens.ts'

export interface Credentials {
  readonly userId: string
  /** Null for an account without a password. */
  readonly passwordHash: string | null
  readonly isEmailVerified: boolean
  readonly isDisabled: boolean
}

/** Addresses are compared without regard to case. */
export const findCredentialsByEmail = async (sql: Sql, email: string): Promise<Credentials | undefined> =>
  first(sql<Credentials[]>`
    select id as user_id, password_hash,
      email_verified_at is not null as is_email_verified, disabled_at is not null as is_disabled
    from users where lower(email) = lower(${email})`)

/** What the owner of an account signs in with. */
export interface OwnCredentials {
  /** Null for an account created through a provider that verified no address. */
  readonly email: string | null
  readonly passwordHash: string | null
}

export const findCredentials = async (sql: Sql, userId: string): Promise<OwnCredentials | undefined> =>
  first(sql<OwnCredentials[]>`select email, password_hash from users where id = ${userId}`)

/**
 * The address that mails about the account's security go to: another person may read one that is not verified. Null for
 * none.
 */
export const findVerifiedEmail = async (sql: Sql, userId: string): Promise<string | null> =>
  (await firstValue(sql<{ email: string | null }[]>`
    select email from users where id = ${userId} and email_verified_at is not null`)) ?? null

/**
 * Locks the row until the transaction ends: the account is not disabled and its password is not changed by another one.
 */
export const lockCredentials = async (sql: Sql, userId: string): Promise<Credentials | undefined> =>
  first(sql<Credentials[]>`
    select id as user_id, password_hash,
      email_verified_at is not null as is_email_verified, disabled_at is not null as is_disabled
    from users where id = ${userId} for share`)

/** @returns the id of the new account, or undefined if the address or the stream token is taken. */
export const insertUser = async (
  sql: Sql,
  sealing: Sealing,
  { email, passwordHash, streamToken }: { email: string; passwordHash: string; streamToken: string },
): Promise<string | undefined> => {
  const { id, token, isTaken } = newAccount(sql, sealing, streamToken)
  return await firstValue(sql<{ id: string }[]>`
    insert into users (id, email, password_hash, stream_token_sealed, stream_token_hash)
    select ${id}, ${email}, ${passwordHash}, ${token.sealed}, ${token.hash} where not ${isTaken}
    on conflict do nothing returning id`)
}

/**
 * Adds an account without a password.
 * @param email verified by the provider, so it is stored as verified and its owner as proved. Null if the provider
 * verified none.
 * @returns the id of the new account, or undefined if the address or the stream token is taken.
 */
export const insertUserFromProvider = async (
  sql: Sql,
  sealing: Sealing,
  { email, streamToken }: { email: string | null; streamToken: string },
): Promise<string | undefined> => {
  const { id, token, isTaken } = newAccount(sql, sealing, streamToken)
  return await firstValue(sql<{ id: string }[]>`
    insert into users (id, email, email_verified_at, owner_proved_at, stream_token_sealed, stream_token_hash)
    select ${id}, ${email}, verified_at, verified_at, ${token.sealed}, ${token.hash}
    from (select case when ${email}::text is not null then now() end as verified_at) provider where not ${isTaken}
    on conflict do nothing returning id`)
}

/** The id is chosen here because the sealed token is bound to it. `isTaken`: another account has the stream token. */
function newAccount(sql: Sql, sealing: Sealing, streamToken: string) {
  const id = randomUUID()
  // As hexadecimal text: the driver would send an array of buffers as a single value.
  const hashes = streamTokenHashes(sealing, streamToken).map((hash) => hash.toString('hex'))
  const isTaken = sql`exists (
    select from users
    where stream_token_hash in (select decode(hash, 'hex') from unnest(${hashes}::text[]) hash))`
  return { id, token: sealStreamToken(sealing, id, streamToken), isTaken }
}

/** True if the account has this address, compared without regard to case, and it is verified. */
export const hasVerifiedEmail = async (sql: Sql, userId: string, email: string): Promise<boolean> =>
  hasRow(sql`
    select from users where id = ${userId} and lower(email) = lower(${email}) and email_verified_at is not null`)

/** Marks the account's address as verified if it is the given one, which was proved or verified by a provider. */
export const verifyOwnEmail = async (sql: Sql, userId: string, email: string): Promise<void> => {
  await sql`
    update users set email_verified_at = now()
    where id = ${userId} and lower(email) = lower(${email}) and email_verified_at is null`
}

/**
 * Replaces the address by one that was just proved. Its owner has not secured the account, which another person may
 * have prepared and sent the link of: the next reset does (`db/transactions/secure-account.ts`).
 * @returns false if another account has the address. Throws {@link isEmailTakenError} if another one gets it at the
 * same time.
 */
export async function changeEmail(sql: Sql, userId: string, email: string): Promise<boolean> {
  const { count } = await sql`
    update users set email = ${email}, email_verified_at = now(), owner_proved_at = null
    where id = ${userId} and not exists (select from users o where lower(o.email) = lower(${email}) and o.id <> ${userId})`
  return count === 1
}

/** Whether the statement failed because a concurrent transaction gave the address to another account. */
export const isEmailTakenError = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && error.code === '23505' && error.constraint_name === 'users_email'

export const removePassword = async (sql: Sql, userId: string): Promise<void> => {
  await sql`update users set password_hash = null where id = ${userId}`
}

/** The account's address in the form for places where it is not erased with the account; null if it has none. */
export const findMaskedEmail = async (sql: Sql, userId: string): Promise<string | null> => {
  const row = await first(sql<{ email: string | null }[]>`select email from users where id = ${userId}`)
  return maskAccountEmail(row?.email ?? null)
}

export interface LockedAccount extends StoredStreamToken {
  /** As {@link findMaskedEmail} returns it. */
  readonly maskedEmail: string | null
}

/**
 * Locks the account's row as {@link lockUser} does, and reads what the answer and the workflow of a start show of it.
 */
export async function lockAccount(tx: Sql, userId: string): Promise<LockedAccount | undefined> {
  const row = await first(tx<(StoredStreamToken & { email: string | null })[]>`
    select email, stream_token_sealed from users where id = ${userId} for no key update`)
  if (!row) return undefined
  const { email, streamTokenSealed } = row
  return { streamTokenSealed, maskedEmail: maskAccountEmail(email) }
}

/** Throws if the account does not exist. */
export async function getStoredStreamToken(sql: Sql, userId: string): Promise<StoredStreamToken> {
  const row = await first(sql<StoredStreamToken[]>`select stream_token_sealed from users where id = ${userId}`)
  if (!row) throw new Error('the account does not exist')
  return row
}

/**
 * Locks the account's row until the transaction ends: no other transaction changes the account, signs in to it or
 * starts a relay on it.
 * @returns whether the account exists.
 */
export const lockUser = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`select from users where id = ${userId} for no key update`)

/** Locks the account with this address, as {@link lockUser} does. Addresses are compared without regard to case. */
export const lockUserByEmail = async (sql: Sql, email: string): Promise<string | undefined> =>
  firstValue(sql<{ id: string }[]>`select id from users where lower(email) = lower(${email}) for no key update`)

export const setPassword = async (sql: Sql, userId: string, passwordHash: string): Promise<void> => {
  await sql`update users set password_hash = ${passwordHash} where id = ${userId}`
}

/** Disables or enables the account. Disabling it again keeps the time of the first. */
export const setDisabled = async (sql: Sql, userId: string, isDisabled: boolean): Promise<void> => {
  await sql`update users set disabled_at = case when ${isDisabled} then coalesce(disabled_at, now()) end where id = ${userId}`
}

/** Set by operators; when false the account may not start relays, whatever its plan. */
export const setRelayAccess = async (sql: Sql, userId: string, isEnabled: boolean): Promise<void> => {
  await sql`update users set relay_access_enabled = ${isEnabled} where id = ${userId}`
}
