/** Sends the sandbox's webhooks, signed with the library of Standard Webhooks instead of the product's code. */
import { createHmac, randomUUID } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { SandboxEventType } from '../../providers/billing/sandbox-events.ts'
import type { Answer, Client, ErrorBody, TestApi } from './api.ts'
import { type RawAnswer, sendRaw } from './raw-http.ts'
import { operator } from './relays.ts'

export interface EventData {
  readonly user_id?: string
  readonly subscription_id?: string
  readonly kind?: 'plan' | 'addon'
  readonly quantity?: unknown
  readonly invoice_id?: string
  readonly amount?: 'full' | 'partial'
  readonly period_start?: string
  readonly period_end?: string
}

export interface BillingEventBody {
  readonly type: string
  readonly occurred_at: string
  readonly data: EventData
}

/** An event of a new subscription, dated now by default, for the plan unless its type requires an add-on. */
export const billingEvent = (
  type: SandboxEventType,
  data: EventData = {},
  at: number | Date = Date.now(),
): BillingEventBody => ({
  type,
  occurred_at: new Date(at).toISOString(),
  data: { subscription_id: `sub_${randomUUID()}`, kind: type === 'addon.updated' ? 'addon' : 'plan', ...data },
})

export interface Sending {
  /** Identical in every repetition of an event; random by default. */
  readonly id?: string
  /** The time of the signature. */
  readonly at?: Date
  readonly headers?: Readonly<Record<string, string>>
}

/** The headers of Standard Webhooks 1.0. */
export function signedHeaders(secret: string, body: string | Buffer, { id = randomUUID(), at = new Date() }: Sending) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature':
      typeof body === 'string' ? new Webhook(secret).sign(id, at, body) : signBytes(secret, id, at, body),
  }
}

/** The library decodes the body as text, which changes invalid UTF-8. */
const signBytes = (secret: string, id: string, at: Date, body: Buffer): string =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${id}.${Math.floor(at.getTime() / 1000)}.`)
    .update(body)
    .digest('base64')}`

export interface SandboxSender {
  /** Sends a webhook once. Text and bytes are sent unchanged. */
  send(event: BillingEventBody | string | Buffer, sending?: Sending): Promise<Answer<Partial<ErrorBody>>>
}

/** @param secret in the format `whsec_…`; the API's first secret by default. */
export const sandboxSender = (api: TestApi | Client, secret: string = firstSecret(api)): SandboxSender => ({
  send: async (event, sending = {}) => {
    const body = typeof event === 'string' || Buffer.isBuffer(event) ? event : JSON.stringify(event)
    const response = await fetch(`${api.url}/api/v1/billing/webhook`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...signedHeaders(secret, body, sending), ...sending.headers },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    })
    return { status: response.status, body: (await response.json()) as Partial<ErrorBody>, headers: response.headers }
  },
})

/** Sends a request over a raw connection, with these headers and those that HTTP requires. */
export const rawWebhook = (api: Client, body: string, headers: Readonly<Record<string, string>>): Promise<RawAnswer> =>
  sendRaw(api.url, `${webhookHead(api, { 'Content-Length': String(Buffer.byteLength(body)), ...headers })}${body}`)

/** The request without its body. */
export const webhookHead = (api: Client, headers: Readonly<Record<string, string>>): string =>
  [
    'POST /api/v1/billing/webhook HTTP/1.1',
    `Host: ${new URL(api.url).host}`,
    'Connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

function firstSecret(api: TestApi | Client): string {
  const [secret] = 'services' in api ? api.services.config.billing.webhookSecrets : []
  if (secret === undefined) throw new Error('this API runs in another process: pass its secret')
  return secret
}

export interface EventView {
  readonly id: string
  readonly event_key: string
  readonly provider: string
  readonly type: string
  readonly action: string | null
  readonly user_id: string | null
  readonly masked_email: string | null
  readonly status: string
  readonly received_at: string
  readonly occurred_at: string | null
  readonly error: string | null
}

export interface EventsReply {
  readonly events: readonly EventView[]
  readonly next_cursor: string | null
}

/** The newest events of the operators' list. */
export const fetchEvents = async (api: Client, query = ''): Promise<EventsReply> =>
  (await api.get<EventsReply>(`/admin/billing/events${query}`, { headers: operator })).body

/** The event with this key, if it is among the newest. */
export const findEvent = async (api: Client, key: string): Promise<EventView | undefined> =>
  (await fetchEvents(api)).events.find((event) => event.event_key === key)
