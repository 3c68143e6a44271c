/** Live sessions that are looked at, which each api process sends to the others with NOTIFY. */
import { type Database, listen, type Sql } from '../connection.ts'

const channel = 'relay_sessions_watched'
/** A notification has 8000 bytes at most, and an id 36 characters and a space. */
const idsMax = 200

export interface Watched {
  readonly sessionIds: readonly string[]
  /** Their live sessions are watched. */
  readonly userIds: readonly string[]
}

/** Informs all api processes that these sessions are watched. */
export const announceWatches = async (sql: Sql, { sessionIds, userIds }: Watched): Promise<void> => {
  await sql`
    select pg_notify(${channel}, string_agg(id::text, ' ')) from (
      select id, (row_number() over ()) / ${idsMax}::int as part from relay_sessions
      where state <> 'stopped' and (id = any(${sessionIds}::uuid[]) or user_id = any(${userIds}::uuid[]))
    ) watched group by part`
}

/** Listens by the rules of `listen`. */
export const listenForWatches = (sql: Database, onWatched: (sessionIds: readonly string[]) => void): Promise<void> =>
  listen(
    sql,
    channel,
    (payload) => onWatched(payload.split(' ')),
    () => {},
  )
