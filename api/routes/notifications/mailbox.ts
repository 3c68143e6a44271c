/** The mailbox: mails that are kept readable instead of being sent, in an embedded service only. */
import { z } from 'zod'
import { listLatestMails } from '../../../db/notifications/mailbox.ts'
import { openMessage } from '../../../db/notifications/outbox.ts'
import { isLoopback } from '../../../platform/loopback.ts'
import type { Mail } from '../../../providers/mail/mail.ts'
import { renderText } from '../../../providers/mail/render.ts'
import { composeMail } from '../../../providers/mail/texts.ts'
import { Refusal } from '../../http/refusals.ts'
import { ok, route } from '../../http/route.ts'
import { id, timestamp } from '../../http/schemas.ts'

const mailsMax = 100

export const list = route.none({
  summary: 'List the latest mails',
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
