import { nameOfApp } from '../domain/identity/apps.ts'
import type { Fragment, Sql } from './connection.ts'

/** The client of an auth session: a browser on the site, or a plugin, which chooses its own name. */
export interface Client {
  readonly kind: 'web' | 'plugin'
  /** For display only; a plugin may choose any name, including `web`. */
  readonly name: string
}

/** The auth session of a request, or the grant of the app that sent it. */
export type RequestSender = { readonly authSessionId: string } | { readonly grantId: string; readonly clientId: string }

/** The name of the app or plugin that sent a request, as an expression; null for the site. */
export const senderName = (sql: Sql, sender: RequestSender): Fragment =>
  'grantId' in sender
    ? sql`${nameOfApp(sender.clientId)}::text`
    : sql`(select a.client from auth_sessions a where a.id = ${sender.authSessionId} and a.kind = 'plugin')`
