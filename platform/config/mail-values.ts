/** Values of the mail variables: the SMTP server and the sender. */
import { parseEmailAddress } from '../../domain/identity/email-address.ts'

export interface SmtpConfig {
  readonly host: string
  readonly port: number
  /**
   * `implicit`: TLS from the first byte. `starttls`: required after the greeting. Both verify the certificate. `local`:
   * as the server on this machine offers it, unverified. `off`: no TLS.
   */
  readonly tls: 'implicit' | 'starttls' | 'local' | 'off'
  /** Undefined for a server that requires no sign-in. */
  readonly auth: { readonly user: string; readonly pass: string } | undefined
}

export interface MailSender {
  readonly name: string
  readonly address: string
}

/** @returns the problem as text if the URL is not valid. It never contains a part of the URL. */
export function parseSmtpUrl(text: string): SmtpConfig | string {
  if (!URL.canParse(text)) return 'is not an smtp:// or smtps:// URL'
  const { protocol, hostname, port, username, password, pathname, search } = new URL(text)
  if ((protocol !== 'smtp:' && protocol !== 'smtps:') || hostname === '') return 'is not an smtp:// or smtps:// URL'
  if (pathname !== '' && pathname !== '/') return 'has a path'
  const isImplicit = protocol === 'smtps:'
  if (search !== '' && (search !== '?tls=off' || isImplicit)) return 'has a query other than ?tls=off after smtp://'
  if ((username === '') !== (password === '')) return 'has a user without a password, or a password without a user'
  const host = hostname.replace(/^\[|\]$/g, '')
  try {
    return {
      host,
      port: Number(port || (isImplicit ? 465 : 587)),
      tls: isImplicit ? 'implicit' : search !== '' ? 'off' : isLoopback(host) ? 'local' : 'starttls',
      auth: username === '' ? undefined : { user: decodeURIComponent(username), pass: decodeURIComponent(password) },
    }
  } catch {
    return 'has a % in its user or password that is not encoded as %25'
  }
}

/** Whether the host is this machine. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(host)

/** `Name <address>` or an address alone. @returns undefined if it is neither. */
export function parseSender(text: string): MailSender | undefined {
  const [, name = '', bracketed] = /^([^<>\p{C}]*)<([^<>]+)>$/u.exec(text.trim()) ?? []
  const parsed = parseEmailAddress(bracketed ?? text)
  // The part before the @ is often internal to a server, as in `no-reply@localhost`.
  const address = 'address' in parsed ? parsed.address : /^[\w.+-]+@localhost$/.exec(bracketed ?? text.trim())?.[0]
  return address === undefined ? undefined : { name: name.trim().replace(/^"(.*)"$/, '$1'), address }
}
