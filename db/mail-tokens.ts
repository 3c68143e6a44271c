/** Tokens of mailed links. Each is used once, and proves that its holder reads the mail of an account's address. */
import { first, type Sql } from './connection.ts'

export type MailPurpose = 'verify_email' | 'reset_password'

/** How long a link is valid, in seconds. */
export const mailTokenSeconds: Readonly<Record<MailPurpose, number>> = { verify_email: 86_400, reset_password: 1800 }

/** The number of valid links per account and purpose, so that repeated requests do not fill a mailbox. */
export const validLinksMax = 5

export interface NewMailToken {
  readonly tokenHash: Buffer
  readonly purpose: MailPurpose
  /** Undefined runs the same query for no account. */
  readonly userId: string | undefined
}

/**
 * Adds a token and returns the address to mail it to. Returns undefined if there is nothing to mail: no account, no address,
 * a disabled account, an address that is verified already, or {@link validLinksMax} links. The caller has locked the account's
 * row: two concurrent requests would not count each other's link.
 */
export const insertMailToken = async (
  sql: Sql,
  { tokenHash, purpose, userId }: NewMailToken,
): Promise<string | undefined> =>
  first(
    await sql<{ email: string }[]>`
      insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
      select ${tokenHash}, u.id, ${purpose}, u.email, now() + make_interval(secs => ${mailTokenSeconds[purpose]})
      from users u
      where u.id = ${userId ?? null} and u.email is not null and u.disabled_at is null
        and (${purpose} <> 'verify_email' or u.email_verified_at is null)
        and (select count(*) from mail_tokens t
          where t.user_id = u.id and t.purpose = ${purpose} and t.expires_at > now()) < ${validLinksMax}
      returning email`,
  )?.email

interface PresentedMailToken {
  readonly tokenHash: Buffer
  readonly purpose: MailPurpose
}

/** Not expired, for an account that is not disabled and still has the address that the link was mailed to. */
const isValid = (sql: Sql, { tokenHash, purpose }: PresentedMailToken) => sql`
  t.token_hash = ${tokenHash} and t.purpose = ${purpose} and t.expires_at > now()
  and u.id = t.user_id and lower(u.email) = lower(t.email) and u.disabled_at is null`

/** @returns the user's id, or undefined if the token is not valid. */
export const findMailTokenOwner = async (sql: Sql, token: PresentedMailToken): Promise<string | undefined> =>
  first(
    await sql<{ userId: string }[]>`
      select t.user_id from mail_tokens t, users u where ${isValid(sql, token)}`,
  )?.userId

/**
 * Deletes the token. The caller has locked the account's row: every transaction that changes several rows of an account locks
 * that row first.
 * @returns the address that the link was mailed to, or undefined if the token is not valid.
 */
export const consumeMailToken = async (sql: Sql, token: PresentedMailToken): Promise<string | undefined> =>
  first(
    await sql<{ email: string }[]>`
      delete from mail_tokens t using users u where ${isValid(sql, token)} returning t.email`,
  )?.email
