/** Mails in the log instead of a mailbox, when no sender is configured (specification, "Authentication" 14). */
import type { Logger } from '../../platform/log.ts'
import type { Mail } from './mail.ts'

/**
 * Writes a mail as one log line with the key `mail`.
 * @param logLinks false if links must not be logged: the line then contains only the subject.
 */
export function logMail(log: Logger, logLinks: boolean, { to, subject, link }: Mail): void {
  if (logLinks) log.info({ mail: { to, subject, link } }, 'mail: no sender is configured, forward this link')
  else log.warn({ mail: { subject } }, 'mail: not sent, no sender is configured and SVC_LOG_LINKS is false')
}
