/** The delivery of mails that the configuration selects. */
import type { Deliver } from '../../domain/notifications/outbox.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { logMail } from './log.ts'
import type { Mail } from './mail.ts'
import { createSmtpDelivery } from './smtp.ts'

type Settings = Pick<Config, 'mail' | 'brandName' | 'logLinks'>

export function createMailDelivery(
  { mail: { smtp, from, mailbox }, brandName, logLinks }: Settings,
  log: Logger,
): Deliver {
  if (smtp) return createSmtpDelivery({ smtp, from, brandName })
  // The mailbox reads the outbox itself.
  if (mailbox) return async () => {}
  return async ({ content }) => logMail(log, logLinks, content as Mail)
}
