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

/** The account's stream token, for the relay that is to let its streams in. Throws for an unknown account. */
export async function streamTokenOf(sql: Sql, userId: string): Promise<string> {
  const row = first(await sql<{ stream_token: string }[]>`select stream_token from users where id = ${userId}`)
  if (!row) throw new Error('the account is gone')
  return row.stream_token
}
