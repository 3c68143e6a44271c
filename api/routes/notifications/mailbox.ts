/** The mailbox: mails that are kept readable instead of being sent, in an embedded service only. */
import { z } from 'zod'
import { listLatestMails } from '../../../db/notifications/mailbox.ts'
import { openMessage } from '../../../db/notifications/outbox.ts'
import { isLoopback } from '../../../platform/loopback.ts'
import type { Mail } from '../../../providers/mail/mail.ts'
import { renderText } from '../../../providers/mail/render.ts'
import { composeMail } from '../../../providers/mail/texts.ts'
import type { OperationExamples } from '../../http/operation-text.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok } from '../../http/replies.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { route } from '../route.ts'

const mailsMax = 100

const listExamples: OperationExamples = {
  replies: {
    200: {
      mails: {
        summary: 'A mail with a link',
        value: {
          mails: [
            {
              id: '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90',
              to: 'streamer@example.com',
              subject: 'Verify your email address',
              text: 'Open this link within 24 hours: http://localhost:8081/verify-email?token=example',
              link: 'http://localhost:8081/verify-email?token=example',
              created_at: '2026-08-01T18:00:00.000Z',
            },
          ],
        },
      },
    },
  },
}

export const list = route.none({
  id: 'listMails',
  summary: 'List the latest mails',
  description:
    'The latest 100 mails, for development: they are kept readable instead of being sent. 404 unless `SVC_MAILBOX` is set.',
  answers: {
    200: z.object({
      mails: z.array(
        z.object({
          id,
          to: z.string(),
          subject: z.string(),
          text: z.string().describe('The whole text, with the link.'),
          link: z.string(),
          created_at: timestamp,
        }),
      ),
    }),
  },
  refuses: ['not_found'],
  secret: true,
  examples: listExamples,
  handle: async ({ incoming }, { config, sql, sealing }) => {
    // The process listens on all addresses of the machine, and the mails contain links that open accounts.
    const isAllowed = config.mail.mailbox && isLoopback(incoming.socket.remoteAddress ?? '')
    if (!isAllowed) throw new Refusal('not_found')
    const mails = (await listLatestMails(sql, mailsMax)).map((stored) => {
      const mail = openMessage(sealing, stored) as Mail
      const text = composeMail(mail, config.brandName)
      return {
        id: stored.id,
        to: mail.to,
        subject: text.title,
        text: renderText(text, config.brandName),
        link: mail.link,
        created_at: stored.createdAt.toISOString(),
      }
    })
    return ok({ mails })
  },
})
