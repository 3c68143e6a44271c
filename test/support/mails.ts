/** Emails that the API has written to its log instead of sending them. */
import type { Mail } from '../../providers/mail/mail.ts'
import type { TestApi } from './api.ts'

type LoggedMail = Pick<Mail, 'to' | 'subject' | 'link'>

export interface Mailed extends LoggedMail {
  /** The secret of the link. */
  readonly token: string
}

/** All emails to this address so far, the oldest first. */
export const mailsTo = ({ logged }: Pick<TestApi, 'logged'>, email: string): Mailed[] =>
  logged
    .filter((line) => line.includes('"mail"'))
    .map((line) => (JSON.parse(line) as { mail: LoggedMail }).mail)
    .filter((mail) => mail.to === email)
    .map((mail) => ({ ...mail, token: new URL(mail.link).searchParams.get('token') ?? '' }))
