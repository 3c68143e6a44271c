/** Tokens of mailed links. Each is used once, and proves that its holder reads the mail of an address. */
import { firstValue, hasRow, type Sql } from '../connection.ts'

export type MailPurpose = 'verify_email' | 'reset_password' | 'change_email'

/** How long a link is valid, in seconds. */
export const mailTokenSeconds: Readonly<Record<MailPurpose, number>> = {
  verify_email: 86_400,
  reset_password: 1800,
  change_email: 3600,
}

/** The number of valid links per account and purpose, so that repeated requests do not fill a mailbox. */
const validLinksMax = 5

const hasRoomForLink = (sql: Sql, purpose: MailPurpose) => sql`
  (select count(*) from mail_tokens t where t.user_id = u.id and t.purpose = ${purpose} and t.expires_at > now()
    and t.used_at is null) < ${validLinksMax}`

interface NewMailToken {
  readonly tokenHash: Buffer
  readonly purpose: Exclude<MailPurpose, 'change_email'>
  /** Undefined runs the same query for no account. */
  readonly userId: string | undefined
  /** Whether a link also goes to an address that only a sign-in provider verified: a trial needs a mail of our own. */
  readonly isForTrials: boolean
}

/**
 * Adds a token and returns the address to mail it to. Returns undefined if there is nothing to mail: no account, no
 * address, a disabled account, an address that is verified already, or {@link validLinksMax} links. The caller has
 * locked the account's row: two concurrent requests would not count each other's link.
 */
export const insertMailToken = async (
  sql: Sql,
  { tokenHash, purpose, userId, isForTrials }: NewMailToken,
): Promise<string | undefined> =>
  firstValue(sql<{ email: string }[]>`
    insert into mail_tokens (token_hash, user_id, purpose, email, expires_at)
    select ${tokenHash}, u.id, ${purpose}, u.email, now() + make_interval(secs => ${mailTokenSeconds[purpose]})
    from users u
    where u.id = ${userId ?? null} and u.email is not null and u.disabled_at is null
      and (${purpose} <> 'verify_email' or u.email_verified_at is null
        or (${isForTrials} and u.trial_address_hash is null)) and ${hasRoomForLink(sql, purpose)}
    returning email`)

/**
 * Adds a token for a change of the account's address, to be mailed to the new one. The caller has locked the account's
 * row.
 * @returns false if there are {@link validLinksMax} links, so that there is nothing to mail.
 */
export const insertEmailChangeToken = async (
  sql: Sql,
  { tokenHash, userId, newEmail }: { tokenHash: Buffer; userId: string; newEmail: string },
): Promise<boolean> =>
  hasRow(sql`
    insert into mail_tokens (token_hash, user_id, purpose, email, previous_email, expires_at)
    select ${tokenHash}, u.id, 'change_email', ${newEmail}, u.email,
      now() + make_interval(secs => ${mailTokenSeconds.change_email})
    from users u where u.id = ${userId} and u.disabled_at is null and ${hasRoomForLink(sql, 'change_email')}`)

interface PresentedMailToken {
  readonly tokenHash: Buffer
  readonly purpose: MailPurpose
}

/**
 * Not expired, not used, for an account that is not disabled and whose address is still the one that the link was
 * mailed to; for a change of the address, the one that it replaces.
 */
const isValid = (sql: Sql, { tokenHash, purpose }: PresentedMailToken) => sql`
  t.token_hash = ${tokenHash} and t.purpose = ${purpose} and t.expires_at > now() and t.used_at is null
  and u.id = t.user_id and u.disabled_at is null
  and lower(u.email) is not distinct from lower(case t.purpose when 'change_email' then t.previous_email else t.email end)`

/** @returns the user's id, or undefined if the token is not valid. */
export const findMailTokenOwner = async (sql: Sql, token: PresentedMailToken): Promise<string | undefined> =>
  firstValue(sql<{ userId: string }[]>`
    select t.user_id from mail_tokens t, users u where ${isValid(sql, token)}`)

/**
 * Marks the token as used. The caller has locked the account's row: every transaction that changes several rows of an
 * account locks that row first.
 * @returns the address that the link was mailed to, or undefined if the token is not valid.
 */
export const consumeMailToken = async (sql: Sql, token: PresentedMailToken): Promise<string | undefined> =>
  firstValue(sql<{ email: string }[]>`
    update mail_tokens t set used_at = now() from users u where ${isValid(sql, token)} returning t.email`)

/** Deletes the account's links that were not used, of all purposes unless given. */
export const deleteMailTokens = async (sql: Sql, userId: string, purposes?: readonly MailPurpose[]): Promise<void> => {
  await sql`
    delete from mail_tokens where user_id = ${userId} and used_at is null
      ${purposes ? sql`and purpose = any(${purposes as MailPurpose[]}::text[])` : sql``}`
}

/**
 * Whether a verification link, used or not, belongs to an account that has verified the address that the link was
 * mailed to. Expired links are known until they are deleted.
 * @param isForTrials whether an unused link may still prove the address for a trial.
 */
export const isOfVerifiedEmail = async (sql: Sql, tokenHash: Buffer, isForTrials: boolean): Promise<boolean> =>
  hasRow(sql`
    select from mail_tokens t join users u on u.id = t.user_id
    where t.token_hash = ${tokenHash} and t.purpose = 'verify_email' and lower(u.email) = lower(t.email)
      and u.email_verified_at is not null and u.disabled_at is null
      and not (${isForTrials} and t.used_at is null and u.trial_address_hash is null)`)
