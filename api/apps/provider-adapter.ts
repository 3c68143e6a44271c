/**
 * Where the provider stores what it knows, in Postgres. Grants, tokens and requests have tables of their own; access
 * tokens are JWTs, and sessions of the provider do not exist: each request is approved by itself.
 */
import type { Adapter, AdapterFactory, AdapterPayload, InteractionResults } from 'oidc-provider'
import { recordAuditEntry } from '../../db/audit.ts'
import { endGrant, findAliveGrant, lockGrant, rotateGrant, useGrant } from '../../db/identity/app-grants.ts'
import { deleteAppRequest, findAppRequestPayload, insertAppRequest } from '../../db/identity/app-requests.ts'
import {
  type AppToken,
  type AppTokenKind,
  consumeAppToken,
  findAppToken,
  findGrantIdOfToken,
  insertAppToken,
} from '../../db/identity/app-tokens.ts'
import { isRefreshTokenUsable, nameOfApp, parseScopes } from '../../domain/identity/apps.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { currentContext } from './provider-context.ts'

/** @param resource the identifier of the API, for which all scopes are granted. */
export const createAdapterFactory =
  (sealing: Sealing, resource: string): AdapterFactory =>
  (model) => {
    switch (model) {
      case 'Interaction':
        return { ...nothing, ...requestStore(sealing) }
      case 'Grant':
        return { ...nothing, ...grantStore(resource) }
      case 'AuthorizationCode':
        return { ...nothing, ...tokenStore('code') }
      case 'RefreshToken':
        return { ...nothing, ...tokenStore('refresh') }
      default:
        return nothing
    }
  }

const nothing: Adapter = {
  upsert: async () => undefined,
  find: async () => undefined,
  findByUserCode: async () => undefined,
  findByUid: async () => undefined,
  consume: async () => undefined,
  destroy: async () => undefined,
  // What belongs to a grant ends with it.
  revokeByGrantId: async () => undefined,
}

const requestStore = (sealing: Sealing): Partial<Adapter> => ({
  upsert: async (id, { jti: _, ...payload }) => {
    const { sql, ip, userAgent } = currentContext()
    const { params = {} } = payload
    const scopes = parseScopes(String(params.scope ?? ''))
    await insertAppRequest(sql, sealing, id, { clientId: String(params.client_id), scopes, payload, ip, userAgent })
  },
  find: async (id) => {
    const { sql, decided } = currentContext()
    const payload = await findAppRequestPayload(sql, sealing, id)
    return (
      payload && {
        ...payload,
        jti: id,
        ...(decided?.requestId === id ? { result: decided.result as InteractionResults } : {}),
      }
    )
  },
  destroy: (id) => deleteAppRequest(currentContext().sql, id),
})

const secondsOf = (date: Date): number => Math.floor(date.getTime() / 1000)

const grantStore = (resource: string): Partial<Adapter> => ({
  find: async (id) => {
    const grant = await findAliveGrant(currentContext().sql, id)
    return (
      grant && {
        kind: 'Grant',
        jti: grant.id,
        accountId: grant.userId,
        clientId: grant.clientId,
        resources: { [resource]: grant.scopes.join(' ') },
        iat: secondsOf(grant.createdAt),
        exp: secondsOf(grant.expiresAt),
      }
    )
  },
  destroy: async (id) => {
    const { sql, endReason, ip } = currentContext()
    const grant = await findAliveGrant(sql, id)
    if (!grant || !(await endGrant(sql, id, endReason))) return
    await recordAuditEntry(sql, {
      initiator: endReason === 'token_reuse' ? 'system' : 'user',
      action: 'app_signed_out',
      userId: grant.userId,
      ip,
      client: { kind: 'plugin', name: nameOfApp(grant.clientId) },
      detail: { client_id: grant.clientId, why: endReason },
    })
  },
})

const tokenStore = (kind: AppTokenKind): Partial<Adapter> => ({
  upsert: async (token, { jti: _, ...payload }) => {
    const { sql } = currentContext()
    const { grantId = '', rotations: generation = 0, exp: expiresAtSeconds = 0 } = payload
    await insertAppToken(sql, token, { kind, grantId, generation, payload, expiresAtSeconds })
    if (kind === 'refresh' && (await useGrant(sql, grantId))) await recordConnection(grantId)
  },
  find: async (token) => {
    const { sql } = currentContext()
    const grantId = await findGrantIdOfToken(sql, kind, token)
    if (grantId === undefined) return undefined
    await lockGrant(sql, grantId)
    // Read with the lock held: a concurrent request may have exchanged the token while this one waited.
    const stored = await findAppToken(sql, kind, token)
    return stored && { ...(stored.payload as AdapterPayload), jti: token, ...consumptionOf(kind, stored) }
  },
  consume: async (token) => {
    const { sql } = currentContext()
    const consumed = await consumeAppToken(sql, token)
    if (consumed && kind === 'refresh') await rotateGrant(sql, consumed.grantId, consumed.generation)
  },
})

/** For the library a refresh token is consumed only when its use shows that two parties have it. */
function consumptionOf(kind: AppTokenKind, token: AppToken): { readonly consumed?: number } {
  const { consumedAt, generation, grantGeneration, rotatedSecondsAgo } = token
  if (kind === 'code') return consumedAt ? { consumed: secondsOf(consumedAt) } : {}
  const isUsable = isRefreshTokenUsable(generation, { generation: grantGeneration, rotatedSecondsAgo })
  return isUsable ? {} : { consumed: secondsOf(consumedAt ?? new Date()) }
}

async function recordConnection(grantId: string): Promise<void> {
  const { sql } = currentContext()
  const grant = await findAliveGrant(sql, grantId)
  if (!grant) throw new Error('a grant whose tokens were just stored has ended')
  await recordAuditEntry(sql, {
    initiator: 'user',
    action: 'app_connected',
    userId: grant.userId,
    ip: grant.ip,
    client: { kind: 'plugin', name: nameOfApp(grant.clientId) },
    detail: { client_id: grant.clientId, scopes: grant.scopes.join(' ') },
  })
}
