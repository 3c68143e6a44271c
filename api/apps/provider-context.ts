/** What the adapter and the functions of the provider need to know of the request that they work for. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Sql } from '../../db/connection.ts'
import type { GrantEndReason } from '../../db/identity/app-grants.ts'

export interface ProviderContext {
  /** The transaction of the request, or the pool for a request without one. */
  readonly sql: Sql
  readonly ip: string
  readonly userAgent: string
  /** Why a grant ends that the request ends. */
  readonly endReason: GrantEndReason
  /** The user's decision that the browser has brought, as the library expects it. */
  readonly decided?: { readonly requestId: string; readonly result: object }
}

const storage = new AsyncLocalStorage<ProviderContext>()

export const runInContext = <Result>(context: ProviderContext, run: () => Promise<Result>): Promise<Result> =>
  storage.run(context, run)

export function currentContext(): ProviderContext {
  const context = storage.getStore()
  if (!context) throw new Error('the provider works outside of a request')
  return context
}
