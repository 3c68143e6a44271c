/**
 * The tokens of links that turn one notification off without a sign-in. They are sealed and not stored: a token names
 * the account, the kind and the channel, cannot be made without the key, and works as long as its key is configured.
 */
import { notificationChannels, notificationKinds } from '../../domain/notifications/kinds.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { NotificationSetting } from './settings.ts'

const place = ['unsubscribe_token']

export const createUnsubscribeToken = (
  sealing: Sealing,
  { userId, kind, channel }: NotificationSetting & { readonly userId: string },
): string => sealing.seal(`${userId} ${kind} ${channel}`, place)

/** Undefined for a token that this service did not make, or made with a key that is not configured any more. */
export function openUnsubscribeToken(
  sealing: Sealing,
  token: string,
): (NotificationSetting & { readonly userId: string }) | undefined {
  const [userId, kind, channel] = openText(sealing, token)?.split(' ') ?? []
  const knownKind = notificationKinds.find((known) => known === kind)
  const knownChannel = notificationChannels.find((known) => known === channel)
  return userId && knownKind && knownChannel ? { userId, kind: knownKind, channel: knownChannel } : undefined
}

function openText(sealing: Sealing, token: string): string | undefined {
  try {
    return sealing.open(token, place).text
  } catch {
    return undefined
  }
}
