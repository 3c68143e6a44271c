/**
 * Tokens of chats whose identity was unlinked, until they are revoked at the provider: written in the transaction that unlinks,
 * so that none is lost, and sealed for the place that they come from. All times are the database's.
 */
import type { Sql } from './connection.ts'
import type { Identity, Provider } from './oauth-accounts.ts'

/** A token that can't be revoked for this long is forgotten: by then no process holds it, and access tokens have expired. */
const ageHoursMax = 24
/** The wait after the first failure; it doubles with each, up to an hour. */
const firstRetrySeconds = 10
const retrySecondsMax = 3600

export interface Revocation {
  readonly id: string
  readonly provider: Provider
  readonly userId: string
  readonly field: 'access_token' | 'refresh_token'
  readonly tokenSealed: string
}

/** Those that may be tried now, the longest due first. */
export const dueRevocations = async (
  sql: Sql,
  providers: readonly Provider[],
  rowsMax: number,
): Promise<Revocation[]> =>
  sql<Revocation[]>`
    select id, provider, user_id, field, token_sealed from provider_token_revocations
    where provider = any(${providers as Provider[]}::text[]) and next_try_at <= now()
    order by next_try_at limit ${rowsMax}`

export const deleteRevocation = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from provider_token_revocations where id = ${id}`
}

export const postponeRevocation = async (sql: Sql, id: string): Promise<void> => {
  await sql`
    update provider_token_revocations set tries = tries + 1,
      next_try_at = now() + make_interval(secs => least(${retrySecondsMax}, ${firstRetrySeconds} * power(2, least(tries, 20))))
    where id = ${id}`
}

/** Forgets those that failed for too long. Answers how many of which provider. */
export const abandonRevocations = async (sql: Sql): Promise<{ provider: Provider; tokens: number }[]> =>
  sql<{ provider: Provider; tokens: number }[]>`
    with abandoned as (
      delete from provider_token_revocations where created_at < now() - make_interval(hours => ${ageHoursMax})
      returning provider
    )
    select provider, count(*)::int as tokens from abandoned group by provider`

/**
 * The identity's chat is connected again: to revoke an earlier token could end the new grant with it, since Google and Discord
 * have one grant for each person. The earlier tokens are forgotten instead.
 */
export const cancelRevocations = async (sql: Sql, { provider, providerUserId }: Identity): Promise<void> => {
  await sql`
    delete from provider_token_revocations where provider = ${provider} and provider_user_id = ${providerUserId}`
}
