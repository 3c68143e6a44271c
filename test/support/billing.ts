/** The billing provider as these tests play it: the sandbox's webhooks, signed by the standard's own package instead of our code. */
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

/** An event of now, of a subscription of its own, and of the plan unless it can only be of an add-on. */
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
  /** The same in every repetition of an event; a new one unless given. */
  readonly id?: string
  /** When it was signed. */
  readonly at?: Date
  readonly headers?: Readonly<Record<string, string>>
}

/** The three headers of Standard Webhooks 1.0 for exactly this body. */
export function signedHeaders(secret: string, body: string | Buffer, { id = randomUUID(), at = new Date() }: Sending) {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature':
      typeof body === 'string' ? new Webhook(secret).sign(id, at, body) : signBytes(secret, id, at, body),
  }
}

/** The package makes text of everything, which loses what is no UTF-8. */
const signBytes = (secret: string, id: string, at: Date, body: Buffer): string =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${id}.${Math.floor(at.getTime() / 1000)}.`)
    .update(body)
    .digest('base64')}`

export interface SandboxSender {
  /** Sends a webhook once. Text and bytes go out as they are. */
  send(event: BillingEventBody | string | Buffer, sending?: Sending): Promise<Answer<Partial<ErrorBody>>>
}

/** @param secret `whsec_`; the first of the api's own unless given. */
export const sandboxSender = (api: TestApi | Client, secret: string = ownSecret(api)): SandboxSender => ({
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

/** Sends a whole request as bytes, with exactly these headers and those that HTTP wants. */
export const rawWebhook = (api: Client, body: string, headers: Readonly<Record<string, string>>): Promise<RawAnswer> =>
  sendRaw(api.url, `${webhookHead(api, { 'Content-Length': String(Buffer.byteLength(body)), ...headers })}${body}`)

/** The beginning of such a request, up to its body. */
export const webhookHead = (api: Client, headers: Readonly<Record<string, string>>): string =>
  [
    'POST /api/v1/billing/webhook HTTP/1.1',
    `Host: ${new URL(api.url).host}`,
    'Connection: close',
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n')

function ownSecret(api: TestApi | Client): string {
  const [secret] = 'services' in api ? api.services.config.billing.webhookSecrets : []
  if (secret === undefined) throw new Error('this api runs elsewhere: say its secret')
  return secret
}

export interface EventView {
  readonly id: string
  readonly event_key: string
  readonly provider: string
  readonly type: string
  readonly action: string | null
  readonly user_id: string | null
  readonly status: string
  readonly received_at: string
  readonly occurred_at: string | null
  readonly error: string | null
}

export interface EventPage {
  readonly events: readonly EventView[]
  readonly next_cursor: string | null
}

/** The newest events, as operators see them. */
export const eventPage = async (api: Client, query = ''): Promise<EventPage> =>
  (await api.get<EventPage>(`/admin/billing/events${query}`, { headers: operator })).body

/** What became of the event with this key, if it is among the newest. */
export const eventOf = async (api: Client, key: string): Promise<EventView | undefined> =>
  (await eventPage(api)).events.find((event) => event.event_key === key)
