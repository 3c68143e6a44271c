/** Delivers mails of the outbox by SMTP. */
import { isIP } from 'node:net'
import { createTransport } from 'nodemailer'
import { type Deliver, UndeliverableError } from '../../domain/notifications/outbox.ts'
import type { MailSender, SmtpConfig } from '../../platform/config/mail-values.ts'
import type { Mail } from './mail.ts'
import { renderHtml, renderText, toLine } from './render.ts'
import { composeMail, type MailText } from './texts.ts'

export interface SmtpOptions {
  readonly smtp: SmtpConfig
  readonly from: MailSender
  readonly brandName: string
  /** Certificate authorities instead of those of the system, in PEM. */
  readonly ca?: string
}

/** For each step of the conversation, in milliseconds. The signal of an attempt limits all of them together. */
const stepMillisMax = 10_000

const createSmtpTransport = ({ smtp, ca }: Pick<SmtpOptions, 'smtp' | 'ca'>) =>
  createTransport({
    host: smtp.host,
    port: smtp.port,
    secure: smtp.tls === 'implicit',
    requireTLS: smtp.tls === 'starttls',
    ignoreTLS: smtp.tls === 'off',
    ...(smtp.auth ? { auth: smtp.auth } : {}),
    tls: {
      minVersion: 'TLSv1.2',
      rejectUnauthorized: smtp.tls !== 'local',
      ...(isIP(smtp.host) ? {} : { servername: smtp.host }),
      ...(ca === undefined ? {} : { ca }),
    },
    connectionTimeout: stepMillisMax,
    greetingTimeout: stepMillisMax,
    socketTimeout: stepMillisMax,
    dnsTimeout: stepMillisMax,
    // A mail consists of text alone.
    disableFileAccess: true,
    disableUrlAccess: true,
  })

/**
 * Connects, and signs in where the server requires it, without sending a mail. Rejects with the reason, without
 * secrets.
 */
export async function checkSmtp(options: Pick<SmtpOptions, 'smtp' | 'ca'>): Promise<void> {
  try {
    await createSmtpTransport(options).verify()
  } catch (error) {
    throw describeFailure(error as SmtpFailure)
  }
}

/**
 * Opens a connection for each mail, so that no state of an earlier one matters. The Message-ID is the same in all
 * attempts: a server that has accepted one can drop the others.
 */
export function createSmtpDelivery({ smtp, from, brandName, ca }: SmtpOptions): Deliver {
  const transport = createSmtpTransport({ smtp, ...(ca === undefined ? {} : { ca }) })
  return async ({ id, content }, signal) => {
    const mail = content as Mail
    if (!isSafeAddress(mail.to)) throw new UndeliverableError('the address of the recipient is not valid for SMTP')
    if ('expiresAt' in mail && Date.parse(mail.expiresAt) < Date.now())
      throw new UndeliverableError('the link of the mail has expired')
    const text = composeMail(mail, brandName)
    try {
      await transport.sendMail({ ...createMessage(id, mail.to, from, text, brandName), signal })
    } catch (error) {
      throw describeFailure(error as SmtpFailure)
    }
  }
}

/** Without characters that separate or quote addresses in a header, or that end an SMTP command. */
const isSafeAddress = (address: string): boolean =>
  /^[^\s@<>()[\],;:\\"\p{C}]+@[^\s@<>()[\],;:\\"\p{C}]+$/u.test(address)

function createMessage(id: string, to: string, from: MailSender, text: MailText, brandName: string) {
  const recipient = { name: '', address: to }
  const unsubscribe = text.unsubscribeLink
  return {
    messageId: `<${id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    envelope: { from: from.address, to: [to] },
    from: { name: toLine(from.name), address: from.address },
    to: recipient,
    subject: toLine(text.title),
    text: renderText(text, brandName),
    html: renderHtml(text, brandName),
    headers: {
      // Keeps automatic replies, such as those of absent people, away (RFC 3834).
      'Auto-Submitted': 'auto-generated',
      ...(unsubscribe === undefined
        ? {}
        : {
            'List-Unsubscribe': { prepared: true, value: `<${new URL(unsubscribe).href}>` },
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
          }),
    },
  }
}

interface SmtpFailure extends Error {
  readonly code?: string
  readonly command?: string
  /** The reply of the server. */
  readonly response?: string
  readonly responseCode?: number
}

/**
 * A refusal of the recipient or of the message is permanent with a 5xx reply. Other 5xx replies are about the
 * connection, the sign-in or the sender, which the operator can correct: these mails are retried.
 */
function describeFailure({ code, command, response, responseCode, message }: SmtpFailure): Error {
  const step = command === undefined ? '' : ` at ${command}`
  const text = `${code ?? 'failed'}${step}: ${withoutSecrets(response ?? message)}`
  const isAboutMail = command === 'RCPT TO' || command === 'DATA'
  const isPermanent = isAboutMail && responseCode !== undefined && responseCode >= 500
  return isPermanent ? new UndeliverableError(text) : new Error(text)
}

/** Servers may quote a link of the mail in their reply, and a link may contain a secret. */
const withoutSecrets = (text: string): string =>
  toLine(text.replace(/\b[a-z]+:\/\/\S+/gi, '(link)').replace(/[\w-]{24,}/g, '(removed)')).slice(0, 300)
