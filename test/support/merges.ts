/** An account with a proved address, and somebody whom a provider vouches for with the same one. */
import type { OAuthProviderName } from '../../providers/oauth/provider.ts'
import type { Answer, GivenUser } from './api.ts'
import { type CallbackReply, newProviderAccount, type OAuthApi } from './oauth-api.ts'
import type { DoubleAccount } from './oauth-double.ts'

export interface BegunMerge {
  readonly user: GivenUser
  /** Who is to be linked to the user's account. */
  readonly person: DoubleAccount
  readonly merge: CallbackReply
  /** What the browser that began it sends to have it done. */
  confirm(body?: { password?: string; merge_token?: string }): Promise<Answer<CallbackReply>>
  /** Goes to a provider to prove whose account it is. */
  proveAs(provider: OAuthProviderName, account: DoubleAccount): Promise<Answer<CallbackReply>>
}

export const userWithProvedAddress = async ({ api }: OAuthApi): Promise<GivenUser> => {
  const user = await api.given.user()
  await api.sql`update users set email_verified_at = now() where id = ${user.userId}`
  return user
}

/** @param user whose merge it is; a new one unless told. */
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
