/** Accounts: who may sign in. */
import { first, type Sql } from './connection.ts'

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
      select id as "userId", password_hash as "passwordHash",
        email_verified_at is not null as "emailVerified", disabled_at is not null as "disabled"
      from users where lower(email) = lower(${email})`,
  )

/** The same by id, and nobody can disable the account or change its password until the transaction ends. */
export const lockCredentials = async (sql: Sql, userId: string): Promise<Credentials | undefined> =>
  first(
    await sql<Credentials[]>`
      select id as "userId", password_hash as "passwordHash",
        email_verified_at is not null as "emailVerified", disabled_at is not null as "disabled"
      from users where id = ${userId} for share`,
  )

/** Adds an account and answers its id, or nothing when its address or its stream token is taken. */
export const insertUser = async (
  sql: Sql,
  user: { email: string; passwordHash: string; streamToken: string },
): Promise<string | undefined> =>
  first(
    await sql<{ id: string }[]>`
      insert into users (email, password_hash, stream_token)
      values (${user.email}, ${user.passwordHash}, ${user.streamToken})
      on conflict do nothing returning id`,
  )?.id

/**
 * Adds an account that signs in through a provider and answers its id, or nothing when its address or stream token is taken.
 * @param email one that the provider vouches for, so it counts as verified; null when it vouches for none.
 */
export const insertUserOfProvider = async (
  sql: Sql,
  { email, streamToken }: { email: string | null; streamToken: string },
): Promise<string | undefined> =>
  first(
    await sql<{ id: string }[]>`
      insert into users (email, email_verified_at, owner_proved_at, stream_token)
      select ${email}, vouched_at, vouched_at, ${streamToken}
      from (select case when ${email}::text is not null then now() end as vouched_at) vouched
      on conflict do nothing returning id`,
  )?.id

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

/** The account's stream token, for the relay that is to let its streams in. Throws for an unknown account. */
export async function streamTokenOf(sql: Sql, userId: string): Promise<string> {
  const row = first(await sql<{ stream_token: string }[]>`select stream_token from users where id = ${userId}`)
  if (!row) throw new Error('the account is gone')
  return row.stream_token
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
