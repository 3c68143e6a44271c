/** How commands name an account: by its email address or its id. */
import type { ApiClient } from '../../client/client.ts'
import { findUserId } from '../plan-grants.ts'
import { notFoundError } from './exit-codes.ts'

/** The id of an account. Rejects when no account has the address; whether an id exists is left to the request that uses it. */
export async function readAccountId(api: ApiClient, account: string): Promise<string> {
  if (!account.includes('@')) return account
  const id = await findUserId(api, account)
  if (id === undefined) throw notFoundError(`There is no account with the address ${account}.`)
  return id
}
