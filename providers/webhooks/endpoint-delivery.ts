/**
 * Delivers notifications to the endpoint of an account: signed as Standard Webhooks, or as messages of a Discord
 * webhook.
 */
import { Webhook } from 'standardwebhooks'
import type { EndpointType, Notification } from '../../domain/notifications/kinds.ts'
import { type Deliver, RetryLaterError, UndeliverableError } from '../../domain/notifications/outbox.ts'
import { describeNotification, plainFormat } from '../../domain/notifications/texts.ts'
import { toDiscordMessage } from './discord-message.ts'
import { type EndpointReply, postToEndpoint } from './endpoint-request.ts'
import { type EndpointRules, parseEndpointUrl, publicEndpointRules } from './endpoint-rules.ts'

/** The content of a message to an endpoint. Its URL is read when it is sent, so a corrected one gets what waits. */
export interface EndpointMessage {
  readonly userId: string
  readonly notification: Notification
  /** The page that the notification is about. */
  readonly link: string
  /** Turns this kind of notification off. Null for a test. */
  readonly unsubscribeLink: string | null
}

export interface Endpoint {
  readonly id: string
  readonly type: EndpointType
  readonly url: string
  readonly secret: string | null
  readonly isDisabled: boolean
}

interface EndpointStore {
  find(userId: string): Promise<Endpoint | undefined>
  recordSuccess(id: string): Promise<void>
  recordFailure(id: string): Promise<void>
  recordGone(id: string): Promise<void>
}

export const createEndpointDelivery =
  (type: EndpointType, store: EndpointStore, rules: EndpointRules = publicEndpointRules): Deliver =>
  async ({ id, content }, signal) => {
    const message = content as EndpointMessage
    const endpoint = await store.find(message.userId)
    if (endpoint?.type !== type) throw new UndeliverableError('The endpoint was removed or replaced.')
    if (endpoint.isDisabled) throw new UndeliverableError('The endpoint is disabled.')
    // The rules may have changed since the URL was saved.
    const parsed = parseEndpointUrl(type, endpoint.url, rules)
    if ('problem' in parsed) throw new UndeliverableError(parsed.problem)
    try {
      const request = { userId: message.userId, url: parsed.url, ...composeRequest(endpoint, id, message) }
      refuseFailure(type, await postToEndpoint(request, rules, signal))
    } catch (error) {
      await (error instanceof EndpointGoneError ? store.recordGone(endpoint.id) : store.recordFailure(endpoint.id))
      throw error
    }
    await store.recordSuccess(endpoint.id)
  }

/** The receiver answered that it wants no messages any more. */
class EndpointGoneError extends UndeliverableError {
  override name = 'EndpointGoneError'
}

interface ComposedRequest {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

function composeRequest({ type, secret }: Endpoint, id: string, message: EndpointMessage): ComposedRequest {
  if (type === 'discord') return { headers: {}, body: JSON.stringify(toDiscordMessage(message)) }
  if (secret === null) throw new UndeliverableError('The endpoint has no signing secret.')
  const body = JSON.stringify(toWebhookPayload(message))
  const now = new Date()
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
  return { headers, body }
}

/** Documented in docs/notifications.md, with an example for each kind. */
export function toWebhookPayload({ notification, link, unsubscribeLink }: Omit<EndpointMessage, 'userId'>) {
  const { title, paragraphs } = describeNotification(notification, plainFormat)
  const { kind: type, timestamp, data } = notification
  return { type, timestamp, data, title, text: paragraphs.join(' '), url: link, unsubscribe_url: unsubscribeLink }
}

/** Discord answers these when the webhook or its token was deleted. */
const goneFromDiscord = [401, 403, 404]

function refuseFailure(type: EndpointType, { status, retryAfterSeconds }: EndpointReply): void {
  if (status >= 200 && status < 300) return
  if (status === 410 || (type === 'discord' && goneFromDiscord.includes(status)))
    throw new EndpointGoneError(`The endpoint answered ${status}: it is gone, and was disabled.`)
  const text =
    status >= 300 && status < 400
      ? `The endpoint answered with a redirect (${status}), which is not followed.`
      : `The endpoint answered ${status}.`
  throw retryAfterSeconds === null ? new Error(text) : new RetryLaterError(text, retryAfterSeconds)
}
