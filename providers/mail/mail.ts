/**
 * Mails that prove an address. One interface, so that a sender can be added; the first version has none and writes the
 * links to the log (specification, "Authentication" 14).
 */
import type { Logger } from '../../platform/log.ts'

export interface Mail {
  readonly to: string
  readonly subject: 'verify_email' | 'reset_password'
  /** Holds a secret that works once. */
  readonly link: string
}

export interface Mailer {
  /**
   * Hands a mail on. Called before the transaction of its token is committed, so that no accepted request is without its
   * mail; a link whose token was never committed does not work and does no harm.
   */
  send(mail: Mail): Promise<void>
}

/**
 * Says each mail in one line of the log, where an operator finds it: search for `"mail"`.
 * @param logLinks false where the log is no place for links: then only that a mail was due is said.
 */
export const logMailer = (log: Logger, logLinks: boolean): Mailer => ({
  send: async ({ to, subject, link }) => {
    if (logLinks) log.info({ mail: { to, subject, link } }, 'mail: no sender is configured, pass this link on')
    else log.warn({ mail: { subject } }, 'mail: not sent, there is no sender and SVC_LOG_LINKS is false')
  },
})
