/** The endpoint of the account: the webhook or Discord channel that its notifications are sent to. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { type AuditEntry, recordAuditEntry } from '../../../db/audit.ts'
import {
  deleteEndpoint,
  findEndpoint,
  replaceEndpoint,
  replaceEndpointSecret,
} from '../../../db/notifications/endpoints.ts'
import { enqueueMessage } from '../../../db/notifications/outbox.ts'
import { endpointTypes, type Notification, notificationPath } from '../../../domain/notifications/kinds.ts'
import type { EndpointMessage } from '../../../providers/webhooks/endpoint-delivery.ts'
import { findAddressProblem, parseEndpointUrl } from '../../../providers/webhooks/endpoint-rules.ts'
import { Refusal } from '../../http/refusals.ts'
import { accepted, created, noContent, ok } from '../../http/replies.ts'
import { EmptyObject, storableText } from '../../http/schemas.ts'
import { EndpointView, presentEndpoint } from '../../views/notification.ts'
import { route } from '../route.ts'

const SigningSecret = z
  .string()
  .describe('Verifies signatures as Standard Webhooks do: `whsec_` and base64. Shown only in this response.')

/** 32 random bytes, in the format of Standard Webhooks. */
const createSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const auditEntry = (action: string, userId: string, ip: string, detail: AuditEntry['detail'] = {}): AuditEntry => ({
  initiator: 'user',
  action,
  userId,
  ip,
  detail,
})

export const save = route.user({
  id: 'setNotificationEndpoint',
  summary: 'Set the URL of the webhook',
  description:
    'Sets the URL that notifications are sent to, in place of the one before. Private addresses are refused. The reply contains the signing secret, which is shown only once: requests to a webhook are signed as Standard Webhooks 1.0 specifies (`webhook-id`, `webhook-timestamp`, `webhook-signature`).',
  secret: true,
  body: z.object({
    type: z.enum(endpointTypes),
    url: storableText(2000).describe('`https://`, with a public host. For `discord` the URL of a Discord webhook.'),
  }),
  answers: { 201: z.object({ endpoint: EndpointView, signing_secret: SigningSecret.nullable() }) },
  refuses: [],
  handle: async ({ body: { type, url }, caller: { userId }, ip }, { sql, sealing }) => {
    const parsed = parseEndpointUrl(type, url)
    const problem = 'problem' in parsed ? parsed.problem : await findAddressProblem(parsed.url, userId)
    if ('problem' in parsed || problem !== undefined)
      throw new Refusal('invalid_request', { message: `body field url: ${problem}` })
    // Discord does not verify signatures.
    const secret = type === 'webhook' ? createSigningSecret() : null
    const endpoint = await sql.begin(async (tx) => {
      await replaceEndpoint(tx, sealing, userId, { type, url: parsed.url.href, secret })
      await recordAuditEntry(tx, auditEntry('notification_endpoint_saved', userId, ip, { type }))
      return findEndpoint(tx, userId)
    })
    if (!endpoint) throw new Refusal('not_found')
    return created({ endpoint: presentEndpoint(sealing, endpoint), signing_secret: secret })
  },
})

export const remove = route.user({
  id: 'removeNotificationEndpoint',
  summary: 'Remove the endpoint. Messages that wait for it are not sent. Safe to repeat',
  description: 'Removes the URL, and with it the notifications on this channel. Safe to repeat.',
  answers: { 204: null },
  refuses: [],
  handle: async ({ caller: { userId }, ip }, { sql }) => {
    await sql.begin(async (tx) => {
      if (await deleteEndpoint(tx, userId))
        await recordAuditEntry(tx, auditEntry('notification_endpoint_removed', userId, ip))
    })
    return noContent()
  },
})

export const rotate = route.user({
  id: 'rotateSigningSecret',
  summary: 'Replace the signing secret of the webhook',
  description: 'Replaces the signing secret of the webhook at once. The one before signs nothing any more.',
  secret: true,
  answers: { 200: z.object({ signing_secret: SigningSecret }) },
  refuses: ['not_found'],
  handle: async ({ caller: { userId }, ip }, { sql, sealing }) => {
    const secret = createSigningSecret()
    await sql.begin(async (tx) => {
      if (!(await replaceEndpointSecret(tx, sealing, userId, secret))) throw new Refusal('not_found')
      await recordAuditEntry(tx, auditEntry('notification_secret_replaced', userId, ip))
    })
    return ok({ signing_secret: secret })
  },
})

export const test = route.user({
  id: 'sendTestNotification',
  summary: 'Send a test notification',
  description: 'Sends a test notification to the URL. Its result is among the deliveries.',
  answers: { 202: EmptyObject },
  refuses: ['not_found'],
  handle: async ({ caller: { userId } }, { sql, sealing, config }) => {
    await sql.begin(async (tx) => {
      const endpoint = await findEndpoint(tx, userId)
      if (!endpoint || endpoint.disabledAt !== null) throw new Refusal('not_found')
      const notification: Notification = { kind: 'test', timestamp: new Date().toISOString(), data: {} }
      const link = config.siteUrl + notificationPath(notification)
      const content: EndpointMessage = { userId, notification, link, unsubscribeLink: null }
      await enqueueMessage(tx, sealing, { userId, channel: endpoint.type, kind: 'test', content })
    })
    return accepted()
  },
})
