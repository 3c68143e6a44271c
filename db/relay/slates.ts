/**
 * What players of a connection see while no stream arrives, and the images of connections. Each change sets the
 * revision of the connection's live session, by which its relay learns of it. Callers of the functions that change them
 * have locked the account.
 */
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import { first, hasRow, type Sql } from '../connection.ts'

export interface SlateImage {
  /** SHA-256 of the image in hexadecimal digits. */
  readonly digest: string
  /** JPEG. */
  readonly image: Buffer
}

/** @returns false when the account has no such connection. */
export const setOnLoss = (tx: Sql, userId: string, name: string, onLoss: OnLoss): Promise<boolean> =>
  hasRow(tx`
    update connections set on_loss = ${onLoss} where user_id = ${userId} and name = ${name} returning label`)

/** Stores the image in place of a former one. @returns false when the account has no such connection. */
export const saveSlate = (tx: Sql, userId: string, name: string, { digest, image }: SlateImage): Promise<boolean> =>
  hasRow(tx`
    insert into slates (connection_label, user_id, digest, image)
    select label, user_id, ${digest}, ${image} from connections where user_id = ${userId} and name = ${name}
    on conflict (connection_label) do update set
      digest = excluded.digest, image = excluded.image, created_at = excluded.created_at
    returning connection_label`)

/** @returns whether there was one. */
export const deleteSlate = (tx: Sql, userId: string, name: string): Promise<boolean> =>
  hasRow(tx`
    delete from slates using connections c
    where c.label = connection_label and c.user_id = ${userId} and c.name = ${name} returning connection_label`)

/** The image of a connection; undefined when it has none, and for an unknown connection. */
export const findSlate = async (sql: Sql, userId: string, name: string): Promise<SlateImage | undefined> =>
  first(sql<SlateImage[]>`
    select digest, image from slates join connections c on c.label = connection_label
    where c.user_id = ${userId} and c.name = ${name}`)

export const findImageByDigest = async (sql: Sql, digest: string): Promise<Buffer | undefined> =>
  (await first(sql<{ image: Buffer }[]>`select image from slates where digest = ${digest} limit 1`))?.image
