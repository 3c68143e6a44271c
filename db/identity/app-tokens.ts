/** Authorization codes and refresh tokens of apps. Only their SHA-256 is stored. */
import { createHash } from 'node:crypto'
import { first, firstValue, type Sql } from '../connection.ts'

export type AppTokenKind = 'code' | 'refresh'

export interface NewAppToken {
  readonly kind: AppTokenKind
  readonly grantId: string
  /** How often a refresh token of the grant had been replaced before. */
  readonly generation: number
  /** What the token stands for, without the token. */
  readonly payload: Readonly<Record<string, unknown>>
  /** Unix time, in seconds. */
  readonly expiresAtSeconds: number
}

export interface AppToken {
  readonly grantId: string
  readonly generation: number
  readonly payload: Readonly<Record<string, unknown>>
  readonly consumedAt: Date | null
  /** Of the grant. */
  readonly grantGeneration: number
  /** Since a refresh token of the grant was replaced; null before that. */
  readonly rotatedSecondsAgo: number | null
}

/** The token is random, so a hash without a secret does not help to guess it. */
const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest()

export const insertAppToken = async (tx: Sql, token: string, it: NewAppToken): Promise<void> => {
  await tx`
    insert into app_tokens (token_hash, grant_id, kind, generation, payload, expires_at)
    values (${hashOf(token)}, ${it.grantId}, ${it.kind}, ${it.generation}, ${tx.json(it.payload as never)},
      to_timestamp(${it.expiresAtSeconds}))`
}

/** The grant of a token, to be locked before the token is read. */
export const findGrantIdOfToken = async (sql: Sql, kind: AppTokenKind, token: string): Promise<string | undefined> =>
  firstValue(sql<{ grantId: string }[]>`
    select grant_id from app_tokens where token_hash = ${hashOf(token)} and kind = ${kind}`)

export const findAppToken = async (sql: Sql, kind: AppTokenKind, token: string): Promise<AppToken | undefined> =>
  first(sql<AppToken[]>`
    select t.grant_id, t.generation, t.payload, t.consumed_at, g.generation as grant_generation,
      extract(epoch from now() - g.rotated_at)::float8 as rotated_seconds_ago
    from app_tokens t join app_grants g on g.id = t.grant_id
    where t.token_hash = ${hashOf(token)} and t.kind = ${kind}`)

/** @returns the grant of the token and its generation in it. */
export const consumeAppToken = async (
  tx: Sql,
  token: string,
): Promise<{ readonly grantId: string; readonly generation: number } | undefined> =>
  first(tx<{ grantId: string; generation: number }[]>`
    update app_tokens set consumed_at = coalesce(consumed_at, now()) where token_hash = ${hashOf(token)}
    returning grant_id, generation`)
