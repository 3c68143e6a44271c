/** A merge: an account with a verified address, and a provider account with the same verified address. */
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import type { Answer, GivenUser } from './api.ts'
import { type CallbackReply, newProviderAccount, type OAuthApi } from './oauth-api.ts'
import type { DoubleAccount } from './oauth-double.ts'

export interface BegunMerge {
  readonly user: GivenUser
  /** The provider account to be linked to the user's account. */
  readonly person: DoubleAccount
  readonly merge: CallbackReply
  /** Sends the confirmation from the browser that started the merge. */
  confirm(body?: { password?: string; merge_token?: string }): Promise<Answer<CallbackReply>>
  /** Signs in at a provider to prove ownership of the account. */
  proveAs(provider: OAuthProviderName, account: DoubleAccount): Promise<Answer<CallbackReply>>
}

export const userWithProvedAddress = async ({ api }: OAuthApi): Promise<GivenUser> => {
  const user = await api.given.user()
  await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  return user
}

/** @param user the owner of the account; a new user by default. */
export async function beginMerge(oauth: OAuthApi, user?: GivenUser): Promise<BegunMerge> {
  const owner = user ?? (await userWithProvedAddress(oauth))
  const person = newProviderAccount({ email: owner.email })
  const { body: merge } = await oauth.authorize('google', person)
  return {
    user: owner,
    person,
    merge,
    confirm: (body = {}) =>
      oauth.api.post(`/auth/merge/${merge.merge_request_id}/confirm`, { merge_token: merge.merge_token, ...body }),
    proveAs: (provider, account) =>
      oauth.authorize(provider, account, { intent: 'merge', merge_request_id: merge.merge_request_id }),
  }
}
