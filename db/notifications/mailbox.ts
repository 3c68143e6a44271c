/** The mails of the outbox that the mailbox shows. */
import type { Sql } from '../connection.ts'

interface StoredMail {
  readonly id: string
  readonly content: Buffer
  readonly createdAt: Date
}

/** The newest first, whether or not they are sent. */
export const listLatestMails = async (sql: Sql, limit: number): Promise<StoredMail[]> =>
  sql<StoredMail[]>`
    select id, content, created_at from outbox_messages
    where channel = 'email' and content is not null order by created_at desc, id limit ${limit}`
