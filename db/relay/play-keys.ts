/**
 * Play keys of accounts. Each change sets the revision of the account's live sessions, by which their relays learn that
 * they need the present keys. Callers of the functions that change keys have locked the account.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { ownPlayKeysMax, type PlayKeyKind } from '../../domain/relay/play-keys.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { first, type Sql } from '../connection.ts'
import { openPlayKey, type StoredPlayKey, sealPlayKey } from '../sealed-tokens.ts'

export interface PlayKeyRow extends StoredPlayKey {
  readonly kind: PlayKeyKind
  readonly name: string
  /** The connection whose relays it opens; null for all of them. */
  readonly connectionId: string | null
  /** The client id of its app; null for a key of another kind. */
  readonly appId: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
}

/** A key that is not stored yet. */
export interface NewPlayKey {
  readonly id: string
  readonly key: string
  readonly keySealed: string
  /** SHA-256 of the key. */
  readonly keyHash: Buffer
}

export function createPlayKey(sealing: Sealing): NewPlayKey {
  const id = randomUUID()
  const key = randomBytes(16).toString('base64url')
  return { id, key, keySealed: sealPlayKey(sealing, id, key), keyHash: hashPlayKey(key) }
}

/** The key is random, so a hash without a secret does not help to guess it. */
const hashPlayKey = (key: string): Buffer => createHash('sha256').update(key).digest()

const columns = (sql: Sql) => sql`id, kind, name, connection_id, app_id, key_sealed, created_at, last_used_at`

/** The keys of an account, those of its owner first, then by age. */
export const listPlayKeys = async (sql: Sql, userId: string): Promise<PlayKeyRow[]> =>
  sql<PlayKeyRow[]>`
    select ${columns(sql)} from play_keys where user_id = ${userId}
    order by array_position(array['own', 'connection', 'app'], kind), created_at, id`

interface OwnPlayKey {
  readonly name: string
  readonly connectionId: string | null
}

/** `limit_reached`: the account has {@link ownPlayKeysMax}. */
export async function insertOwnPlayKey(
  tx: Sql,
  userId: string,
  { id, keySealed, keyHash }: NewPlayKey,
  { name, connectionId }: OwnPlayKey,
): Promise<PlayKeyRow | 'limit_reached'> {
  const row = await first(tx<PlayKeyRow[]>`
    insert into play_keys (id, user_id, kind, name, connection_id, key_sealed, key_hash)
    select ${id}, ${userId}, 'own', ${name}, ${connectionId}, ${keySealed}, ${keyHash}
    where (select count(*) from play_keys where user_id = ${userId} and kind = 'own') < ${ownPlayKeysMax}
    returning ${columns(tx)}`)
  return row ?? 'limit_reached'
}

/** Stores the key of a connection unless it has one. @returns the statement. */
export const ensureConnectionPlayKey = (
  tx: Sql,
  userId: string,
  connectionId: string,
  { id, keySealed, keyHash }: NewPlayKey,
) => tx`
  insert into play_keys (id, user_id, kind, name, connection_id, key_sealed, key_hash)
  values (${id}, ${userId}, 'connection', ${connectionId}, ${connectionId}, ${keySealed}, ${keyHash})
  on conflict (user_id, connection_id) where kind = 'connection' do nothing`

/** The key of an app, which is made with its first use. @param name of the app. */
export async function ensureAppPlayKey(
  tx: Sql,
  sealing: Sealing,
  userId: string,
  app: { readonly id: string; readonly name: string },
): Promise<string> {
  const fresh = createPlayKey(sealing)
  const stored = await first(tx<PlayKeyRow[]>`
    with inserted as (
      insert into play_keys (id, user_id, kind, name, app_id, key_sealed, key_hash)
      values (${fresh.id}, ${userId}, 'app', ${app.name}, ${app.id}, ${fresh.keySealed}, ${fresh.keyHash})
      on conflict (user_id, app_id) where kind = 'app' do nothing returning ${columns(tx)}
    )
    select ${columns(tx)} from inserted
    union all select ${columns(tx)} from play_keys where user_id = ${userId} and app_id = ${app.id}`)
  if (!stored) throw new Error('the key of the app was deleted while it was read, although its account is locked')
  return openPlayKey(sealing, stored)
}

/** The key of an app without a lock; undefined when it has none yet. */
export const findAppPlayKey = async (sql: Sql, userId: string, appId: string): Promise<PlayKeyRow | undefined> =>
  first(sql<PlayKeyRow[]>`
    select ${columns(sql)} from play_keys where user_id = ${userId} and app_id = ${appId}`)

/** Deletes the key of an app, for example when its owner disconnects it. @returns the statement. */
export const deleteAppPlayKey = (tx: Sql, userId: string, appId: string) =>
  tx`delete from play_keys where user_id = ${userId} and app_id = ${appId}`

/** Deletes the keys of all apps. @returns the statement. */
export const deleteAppPlayKeys = (tx: Sql, userId: string) =>
  tx`delete from play_keys where user_id = ${userId} and kind = 'app'`

/** @returns the deleted row; undefined when the account has no such key. */
export const deletePlayKey = async (tx: Sql, userId: string, id: string): Promise<PlayKeyRow | undefined> =>
  first(tx<PlayKeyRow[]>`delete from play_keys where user_id = ${userId} and id = ${id} returning ${columns(tx)}`)

/** Deletes all keys of an account. @returns the statement. */
export const deletePlayKeys = (tx: Sql, userId: string) => tx`delete from play_keys where user_id = ${userId}`
