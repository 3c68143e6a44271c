/** The apps that an account has connected, and their end. */
import { recordAuditEntry } from '../../db/audit.ts'
import type { Database, Sql } from '../../db/connection.ts'
import { endGrantsOf, listConnectedGrants } from '../../db/identity/app-grants.ts'
import { lockUser } from '../../db/identity/users.ts'
import { deleteAppPlayKey, listPlayKeys } from '../../db/relay/play-keys.ts'
import { type AppScope, appScopes, nameOfApp } from '../../domain/identity/apps.ts'
import { Refusal } from '../http/refusals.ts'
import type { User } from '../identity/access-tokens.ts'
import { requireAliveAuthSession } from '../identity/auth-sessions.ts'

export interface ConnectedApp {
  readonly clientId: string
  readonly name: string
  /** What its sign-ins may do together. */
  readonly scopes: readonly AppScope[]
  /** The number of its sign-ins; 0 when it has none and its play key still admits players. */
  readonly signIns: number
  readonly connectedAt: Date
  readonly lastUsedAt: Date
}

/** Those with a sign-in, and those whose play key outlives it, by the time of their connection. */
export async function listConnectedApps(sql: Sql, userId: string): Promise<ConnectedApp[]> {
  const [grants, keys] = await Promise.all([listConnectedGrants(sql, userId), listPlayKeys(sql, userId)])
  const byApp = new Map<string, ConnectedApp>()
  for (const { clientId, scopes, connectedAt, lastUsedAt } of grants) {
    const known = byApp.get(clientId)
    byApp.set(clientId, {
      clientId,
      name: nameOfApp(clientId),
      scopes: appScopes.filter((scope) => known?.scopes.includes(scope) || scopes.includes(scope)),
      signIns: (known?.signIns ?? 0) + 1,
      connectedAt: known?.connectedAt ?? connectedAt,
      lastUsedAt: known && known.lastUsedAt > lastUsedAt ? known.lastUsedAt : lastUsedAt,
    })
  }
  for (const { appId, createdAt, lastUsedAt } of keys)
    if (appId !== null && !byApp.has(appId))
      byApp.set(appId, {
        clientId: appId,
        name: nameOfApp(appId),
        scopes: [],
        signIns: 0,
        connectedAt: createdAt,
        lastUsedAt: lastUsedAt ?? createdAt,
      })
  return [...byApp.values()].toSorted((a, b) => +a.connectedAt - +b.connectedAt)
}

/** Ends all sign-ins of an app, and deletes its play key. Refuses with `not_found` and `unauthorized`. */
export async function disconnectApp(sql: Database, user: User, clientId: string, ip: string): Promise<void> {
  await sql.begin(async (tx) => {
    await lockUser(tx, user.userId)
    await requireAliveAuthSession(tx, user)
    const ended = await endGrantsOf(tx, user.userId, 'disconnected', clientId)
    const { count: keys } = await deleteAppPlayKey(tx, user.userId, clientId)
    if (ended === 0 && keys === 0) throw new Refusal('not_found')
    await recordAuditEntry(tx, {
      initiator: 'user',
      action: 'app_disconnected',
      userId: user.userId,
      ip,
      client: { kind: 'plugin', name: nameOfApp(clientId) },
      detail: { client_id: clientId, sign_ins_ended: ended },
    })
  })
}
