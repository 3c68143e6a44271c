/** The keys that stored secrets are encrypted with. */
import type { Sql } from '../connection.ts'

interface SealedKey {
  keyId: string
  /** How many secrets it encrypts. */
  secrets: number
}

/** Sealed text is `v1.<key id>.…`. */
export const listSealedKeys = async (sql: Sql): Promise<SealedKey[]> =>
  sql<SealedKey[]>`
    select split_part(sealed, '.', 2) as key_id, count(*)::int as secrets from (
      select stream_token_sealed as sealed from users
      union all select key_sealed from play_keys
      union all select unnest(array[pair_token_sealed, relay_ws_token_sealed]) from relay_sessions where state <> 'stopped'
      union all select unnest(array[access_token_sealed, refresh_token_sealed]) from user_oauth_accounts
      union all select token_sealed from provider_token_revocations
      union all select unnest(array[url_sealed, secret_sealed]) from notification_endpoints
      union all select convert_from(content, 'utf8') from outbox_messages
    ) stored where sealed is not null group by 1 order by 1`

interface SealedStreamToken {
  userId: string
  sealed: string
}

/** One for each key, to find out whether a configured key opens it. */
export const listStreamTokensByKey = async (sql: Sql): Promise<SealedStreamToken[]> =>
  sql<SealedStreamToken[]>`
    select distinct on (split_part(stream_token_sealed, '.', 2)) id as user_id, stream_token_sealed as sealed
    from users where stream_token_sealed is not null
    order by split_part(stream_token_sealed, '.', 2), id`
