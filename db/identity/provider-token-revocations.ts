/**
 * Queue of chat tokens to revoke at the provider after their identity was unlinked. Rows are written in the transaction
 * that unlinks, so that none is lost. The tokens stay encrypted as they were in `user_oauth_accounts`. All times are
 * those of the database.
 */
import type { OAuthProviderName } from '../../domain/identity/oauth-providers.ts'
import { backoffSeconds } from '../backoff.ts'
import type { Sql } from '../connection.ts'
import type { Identity } from './oauth-accounts.ts'

/**
 * A token that could not be revoked for this long is dropped: by then access tokens have expired and no process uses
 * it.
 */
const ageHoursMax = 24
const backoff = { firstSeconds: 10, secondsMax: 3600 }

export interface Revocation {
  readonly id: string
  readonly provider: OAuthProviderName
  readonly userId: string
  readonly field: 'access_token' | 'refresh_token'
  readonly tokenSealed: string
}

/** Revocations whose next attempt is due, the most overdue first. */
export const listDueRevocations = async (
  sql: Sql,
  providers: readonly OAuthProviderName[],
  rowsMax: number,
): Promise<Revocation[]> =>
  sql<Revocation[]>`
    select id, provider, user_id, field, token_sealed from provider_token_revocations
    where provider = any(${providers as OAuthProviderName[]}::text[]) and next_attempt_at <= now()
    order by next_attempt_at limit ${rowsMax}`

export const deleteRevocation = async (sql: Sql, id: string): Promise<void> => {
  await sql`delete from provider_token_revocations where id = ${id}`
}

export const postponeRevocation = async (sql: Sql, id: string): Promise<void> => {
  await sql`
    update provider_token_revocations set attempts = attempts + 1,
      next_attempt_at = now() + make_interval(secs => ${backoffSeconds(sql, sql`attempts`, backoff)})
    where id = ${id}`
}

/** Deletes revocations that are older than {@link ageHoursMax}. @returns the number of tokens per provider. */
export const abandonRevocations = async (sql: Sql): Promise<{ provider: OAuthProviderName; tokens: number }[]> =>
  sql<{ provider: OAuthProviderName; tokens: number }[]>`
    with abandoned as (
      delete from provider_token_revocations where created_at < now() - make_interval(hours => ${ageHoursMax})
      returning provider
    )
    select provider, count(*)::int as tokens from abandoned group by provider`

/**
 * Deletes the identity's queued revocations, because its chat was connected again. Google and Discord keep one grant
 * per user, so revoking an earlier token could end the new grant.
 */
export const cancelRevocations = async (sql: Sql, { provider, providerUserId }: Identity): Promise<void> => {
  await sql`
    delete from provider_token_revocations where provider = ${provider} and provider_user_id = ${providerUserId}`
}
