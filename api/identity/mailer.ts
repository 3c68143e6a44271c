/** Where the API leaves its mails: the log, or the outbox, from which the worker sends them. */
import type { Sql } from '../../db/connection.ts'
import { enqueueMessage } from '../../db/notifications/outbox.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { logMail } from '../../providers/mail/log.ts'
import type { Mail } from '../../providers/mail/mail.ts'

export interface Mailer {
  /**
   * Runs in the transaction that stores the link's token, so that every accepted request has its mail. A line of the
   * log is written before the commit: a link whose token was not committed does not work.
   * @param userId the account that the mail is about. Deleting it deletes a mail that is not sent yet. Null for none.
   */
  send(sql: Sql, userId: string | null, mail: Mail): Promise<void>
}

interface Deps {
  readonly config: Pick<Config, 'mail' | 'logLinks'>
  readonly log: Logger
  readonly sealing: Sealing
}

/** Mails go to the log without an SMTP server. With the mailbox they go to both. */
export const createMailer = ({ config: { mail: settings, logLinks }, log, sealing }: Deps): Mailer => ({
  send: async (sql, userId, mail) => {
    if (settings.smtp || settings.mailbox)
      await enqueueMessage(sql, sealing, { userId, channel: 'email', kind: mail.subject, content: mail })
    if (!settings.smtp) logMail(log, logLinks, mail)
  },
})
