/** Where the API leaves its mails: the log, or the outbox, from which the worker sends them. */
import type { Sql } from '../../db/connection.ts'
import { enqueueMessage } from '../../db/outbox.ts'
import type { Logger } from '../../platform/log.ts'
import type { Sealing } from '../../platform/sealing.ts'
import { logMail } from '../../providers/mail/log.ts'
import type { Mail } from '../../providers/mail/mail.ts'

export interface Mailer {
  /**
   * Runs in the transaction that stores the link's token, so that every accepted request has its mail.
   * @param userId the account that the mail is about. Deleting it deletes a mail that is not sent yet. Null for none.
   */
  send(sql: Sql, userId: string | null, mail: Mail): Promise<void>
}

/** Writes before the transaction commits. A link whose token was not committed does not work. */
export const createLogMailer = (log: Logger, logLinks: boolean): Mailer => ({
  send: async (_sql, _userId, mail) => logMail(log, logLinks, mail),
})

export const createOutboxMailer = (sealing: Sealing): Mailer => ({
  send: async (sql, userId, mail) => {
    await enqueueMessage(sql, sealing, { userId, channel: 'email', kind: mail.subject, content: mail })
  },
})
