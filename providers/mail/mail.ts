/** Mails that prove an address. The only sender so far writes the links to the log (specification, "Authentication" 14). */
import type { Logger } from '../../platform/log.ts'

export interface Mail {
  readonly to: string
  readonly subject: 'verify_email' | 'reset_password'
  /** Contains a single-use secret. */
  readonly link: string
}

export interface Mailer {
  /**
   * Runs before the transaction that stores the link's token commits, so that every accepted request has its mail. A link
   * whose token was not committed does not work.
   */
  send(mail: Mail): Promise<void>
}

/**
 * Writes each mail as one log line with the key `mail`.
 * @param logLinks false if links must not be logged: the line then contains only the subject.
 */
export const logMailer = (log: Logger, logLinks: boolean): Mailer => ({
  send: async ({ to, subject, link }) => {
    if (logLinks) log.info({ mail: { to, subject, link } }, 'mail: no sender is configured, forward this link')
    else log.warn({ mail: { subject } }, 'mail: not sent, no sender is configured and SVC_LOG_LINKS is false')
  },
})
