/** How commands name an account: by its email address or its id. */
import { Argument } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { findUserByEmail, type User } from '../plan-grants.ts'
import { byId, type Subject } from './commands.ts'
import { notFoundError } from './exit-codes.ts'
import { parseAccount } from './options.ts'

/** Rejects when there is no such account. */
export async function findUser(api: ApiClient, account: string): Promise<User> {
  if (!account.includes('@'))
    return expectSuccess(await api.GET('/api/v1/admin/users/{id}', byId(account)), `The request for ${account}`).user
  const user = await findUserByEmail(api, account)
  if (!user) throw notFoundError(`There is no account with the address ${account}. Check it, or sign up with it first.`)
  return user
}

/**
 * The id of an account. Rejects when no account has the address; whether an id exists is left to the request that uses
 * it.
 */
export const readAccountId = async (api: ApiClient, account: string): Promise<string> =>
  account.includes('@') ? (await findUser(api, account)).id : account

export const account = {
  argument: new Argument('<account>', 'email address or id of the account').argParser(parseAccount),
  example: 'streamer@example.com',
  readId: readAccountId,
} satisfies Subject
