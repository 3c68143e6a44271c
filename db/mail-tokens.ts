/** The links in mails: each proves once that whoever has it reads what is sent to an account's address. */
import { first, type Sql } from './connection.ts'

export type MailPurpose = 'verify_email' | 'reset_password'

/** How long a link works, in seconds. */
export const lifetimeSeconds: Readonly<Record<MailPurpose, number>> = { verify_email: 86_400, reset_password: 1800 }

/** How many links of one purpose may work at once for an account: asking on and on fills nobody's mailbox. */
export const liveMax = 5

export interface NewMailToken {
  readonly tokenHash: Buffer
  readonly purpose: MailPurpose
  /** Nothing stands for no account, and costs the same question. */
  readonly userId: string | undefined
}

/**
 * Adds a link for the account and answers the address it is to be sent to. Answers nothing when there is nothing to send: no
 * account or address, a disabled one, an address that is verified already, or enough links on their way. The caller holds
 * the account's row, or two requests at once would not see each other's links.
 */
export const insertMailToken = async (
  sql: Sql,
  { tokenHash, purpose, userId }: NewMailToken,
): Promise<string | undefined> =>
  first(
    await sql<{ email: string }[]>`
      insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
      select ${tokenHash}, u.id, ${purpose}, u.email, now() + make_interval(secs => ${lifetimeSeconds[purpose]})
      from users u
      where u.id = ${userId ?? null} and u.email is not null and u.disabled_at is null
        and (${purpose} <> 'verify_email' or u.email_verified_at is null)
        and (select count(*) from mail_tokens t
          where t.user_id = u.id and t.purpose = ${purpose} and t.expires_at > now()) < ${liveMax}
      returning email`,
  )?.email

interface PresentedMailToken {
  readonly tokenHash: Buffer
  readonly purpose: MailPurpose
}

/** What a link must be to count: not over, for an account that is not disabled, and sent to the address it still has. */
const stillGood = (sql: Sql, { tokenHash, purpose }: PresentedMailToken) => sql`
  t.token_hash = ${tokenHash} and t.purpose = ${purpose} and t.expires_at > now()
  and u.id = t.user_id and lower(u.email) = lower(t.email) and u.disabled_at is null`

/** Whose link this is, if it still counts. Changes nothing. */
export const ownerOfMailToken = async (sql: Sql, presented: PresentedMailToken): Promise<string | undefined> =>
  first(
    await sql<{ userId: string }[]>`
      select t.user_id from mail_tokens t, users u where ${stillGood(sql, presented)}`,
  )?.userId

/**
 * Uses the link up and answers the address that it proved, or nothing when it does not count any more. The caller holds the
 * account's row: everything that changes several rows of an account takes that one first.
 */
export const consumeMailToken = async (sql: Sql, presented: PresentedMailToken): Promise<string | undefined> =>
  first(
    await sql<{ email: string }[]>`
      delete from mail_tokens t using users u where ${stillGood(sql, presented)} returning t.email`,
  )?.email
