/** The mail part of the configuration. */
import { isLoopback } from './mail-values.ts'
import type { Values } from './variables.ts'

/** Mail variables that are valid by themselves, but not together. */
export function* findMailConflicts(v: Values): Iterable<string> {
  if (v.SVC_MAILBOX && v.SVC_SMTP_URL !== undefined)
    yield 'SVC_MAILBOX and SVC_SMTP_URL are both set: the mailbox replaces a mail server, and everyone can read it, so keep one'
  if (v.SVC_MAILBOX && v.NODE_ENV === 'production' && !isLocal(v))
    yield 'SVC_MAILBOX is true in production: everyone can read the mailbox. It is for npm start alone'
}

/** Whether the site is for this machine only, as with `npm start`. */
const isLocal = ({ SVC_SITE_URL: siteUrl }: Values): boolean =>
  siteUrl === undefined || isLoopback(new URL(siteUrl).hostname)

export const mailConfig = (v: Values, siteUrl: string) => ({
  /** Undefined: no mail is sent. */
  smtp: v.SVC_SMTP_URL,
  from: v.SVC_MAIL_FROM ?? { name: v.SVC_BRAND_NAME, address: `no-reply@${new URL(siteUrl).hostname}` },
  /** Keeps all mails readable on the page /mailbox, instead of sending them. */
  mailbox: v.SVC_MAILBOX,
})
