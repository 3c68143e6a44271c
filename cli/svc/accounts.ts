/** How commands name an account: by its email address or its id. */
import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import type { Reply } from '../../client/reply.ts'
import { notFoundError } from './exit-codes.ts'

type User = Reply<'get', '/admin/users'>['users'][number]

/** Rejects when there is no such account. */
export async function findUser(api: ApiClient, account: string): Promise<User> {
  if (!account.includes('@')) {
    const params = { path: { id: account } }
    return expectSuccess(await api.GET('/api/v1/admin/users/{id}', { params }), `The request for ${account}`).user
  }
  const found = await api.GET('/api/v1/admin/users', { params: { query: { email: account } } })
  const [user] = expectSuccess(found, `The search for ${account}`).users
  if (!user) throw notFoundError(`There is no account with the address ${account}.`)
  return user
}

/** The id of an account. Rejects when no account has the address; whether an id exists is left to the request that uses it. */
export const readAccountId = async (api: ApiClient, account: string): Promise<string> =>
  account.includes('@') ? (await findUser(api, account)).id : account
