/** The endpoint of an account: the one URL that its notifications are sent to. URL and signing secret are sealed. */
import { randomUUID } from 'node:crypto'
import type { EndpointDisabledReason, EndpointType } from '../../domain/notifications/kinds.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { first, hasRow, type Sql } from '../connection.ts'

type EndpointField = 'endpoint_url' | 'endpoint_secret'
const place = (id: string, field: EndpointField) => [id, field]

export interface StoredEndpoint {
  readonly id: string
  readonly type: EndpointType
  readonly urlSealed: string
  readonly secretSealed: string | null
  readonly createdAt: Date
  readonly disabledAt: Date | null
  readonly disabledReason: EndpointDisabledReason | null
}

export const findEndpoint = async (sql: Sql, userId: string): Promise<StoredEndpoint | undefined> =>
  first(sql<StoredEndpoint[]>`
    select id, type, url_sealed, secret_sealed, created_at, disabled_at, disabled_reason
    from notification_endpoints where user_id = ${userId}`)

interface NewEndpoint {
  readonly type: EndpointType
  readonly url: string
  /** Null for a type without signatures. */
  readonly secret: string | null
}

/** Replaces the account's endpoint. The new one has another id and is enabled. */
export async function replaceEndpoint(
  sql: Sql,
  sealing: Sealing,
  userId: string,
  { type, url, secret }: NewEndpoint,
): Promise<void> {
  const id = randomUUID()
  const urlSealed = sealing.seal(url, place(id, 'endpoint_url'))
  const secretSealed = secret === null ? null : sealing.seal(secret, place(id, 'endpoint_secret'))
  await sql`
    insert into notification_endpoints (id, user_id, type, url_sealed, secret_sealed)
    values (${id}, ${userId}, ${type}, ${urlSealed}, ${secretSealed})
    on conflict (user_id) do update set id = excluded.id, type = excluded.type, url_sealed = excluded.url_sealed,
      secret_sealed = excluded.secret_sealed, created_at = now(), failing_since = null, disabled_at = null,
      disabled_reason = null`
}

/** @returns whether there was one. */
export const deleteEndpoint = async (sql: Sql, userId: string): Promise<boolean> =>
  hasRow(sql`delete from notification_endpoints where user_id = ${userId}`)

/** @returns false when the account has no webhook. */
export async function replaceEndpointSecret(
  sql: Sql,
  sealing: Sealing,
  userId: string,
  secret: string,
): Promise<boolean> {
  const endpoint = await findEndpoint(sql, userId)
  if (endpoint?.type !== 'webhook') return false
  const sealed = sealing.seal(secret, place(endpoint.id, 'endpoint_secret'))
  const { count } = await sql`
    update notification_endpoints set secret_sealed = ${sealed} where id = ${endpoint.id} and type = 'webhook'`
  return count > 0
}

export interface OpenedEndpoint {
  readonly id: string
  readonly type: EndpointType
  readonly url: string
  readonly secret: string | null
  readonly isDisabled: boolean
}

/** Throws if it was sealed with an unknown key. */
export const openEndpoint = (sealing: Sealing, endpoint: StoredEndpoint): OpenedEndpoint => ({
  id: endpoint.id,
  type: endpoint.type,
  url: openEndpointField(sealing, endpoint.id, 'endpoint_url', endpoint.urlSealed),
  secret: endpoint.secretSealed && openEndpointField(sealing, endpoint.id, 'endpoint_secret', endpoint.secretSealed),
  isDisabled: endpoint.disabledAt !== null,
})

const openEndpointField = (sealing: Sealing, id: string, field: EndpointField, sealed: string): string =>
  sealing.open(sealed, place(id, field)).text

/** The text, sealed with the current key. */
export const resealEndpointField = (sealing: Sealing, id: string, field: EndpointField, sealed: string): string =>
  sealing.seal(openEndpointField(sealing, id, field, sealed), place(id, field))
