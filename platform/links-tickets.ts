/**
 * Tickets for the page that a relay serves about the links of its stream. The API issues them, and the relay verifies
 * them with the secret of its instance, which both know.
 */
import { createHmac } from 'node:crypto'
import { areEqualSecrets } from './equal-secrets.ts'

const secondsMax = 300

const macOf = (instanceSecret: string, text: string): string =>
  createHmac('sha256', instanceSecret).update(text).digest('base64url')

const ticketMac = (instanceSecret: string, sessionId: string, expiresAt: number): string =>
  macOf(instanceSecret, `links-ticket:${sessionId}:${expiresAt}`)

/**
 * A ticket for four to five minutes. It changes once a minute, so that a page that reads it often does not change.
 * @param instanceSecrets several while the master secret is being rotated: one of them is that of the relay.
 * @param now milliseconds since 1970.
 * @returns letters, digits, dots, hyphens and underscores.
 */
export function issueLinksTicket(instanceSecrets: readonly string[], sessionId: string, now: number): string {
  const expiresAt = Math.floor(now / 60_000) * 60 + secondsMax
  return [expiresAt, ...instanceSecrets.map((secret) => ticketMac(secret, sessionId, expiresAt))].join('.')
}

/** Whether a text is a ticket for this session that is still valid. */
export function isLinksTicket(text: string, instanceSecret: string, sessionId: string, now: number): boolean {
  const [expiry = '', ...macs] = text.split('.', 4)
  const expiresAt = Number(expiry)
  const secondsLeft = expiresAt - now / 1_000
  if (!/^\d{1,12}$/.test(expiry) || secondsLeft <= 0 || secondsLeft > secondsMax) return false
  const expected = ticketMac(instanceSecret, sessionId, expiresAt)
  return macs.some((mac) => areEqualSecrets(mac, expected))
}

/** With it the page reads the links for as long as the relay runs for the session. */
export const linksKey = (instanceSecret: string, sessionId: string): string =>
  macOf(instanceSecret, `links-key:${sessionId}`)
