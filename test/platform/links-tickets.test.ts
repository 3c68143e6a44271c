/** The tickets for the page about links. */
import { expect, test } from 'vitest'
import { isLinksTicket, issueLinksTicket, linksKey } from '../../platform/links-tickets.ts'

const [secret, session, now] = ['local-1.secret', '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10', 1_795_339_339_382]

test('a ticket is valid for four minutes at least, and five at most', () => {
  const ticket = issueLinksTicket([secret], session, now)
  const isValid = (seconds: number) => isLinksTicket(ticket, secret, session, now + seconds * 1_000)
  expect([0, 120, 240, 300].map(isValid)).toEqual([true, true, true, false])
})

test('a ticket changes once a minute', () => {
  const minute = Math.floor(now / 60_000) * 60_000
  const issue = (at: number) => issueLinksTicket([secret], session, at)
  expect(issue(minute)).toBe(issue(minute + 59_999))
  expect(issue(minute)).not.toBe(issue(minute + 60_000))
})

test('a relay accepts the ticket of any of the secrets that it may have', () => {
  const ticket = issueLinksTicket(['another', secret], session, now)
  expect(isLinksTicket(ticket, secret, session, now)).toBe(true)
})

test.each([
  ['of another session', issueLinksTicket([secret], 'another', now)],
  ['of another relay', issueLinksTicket(['local-2.secret'], session, now)],
  ['with a later end', issueLinksTicket([secret], session, now).replace(/^\d+/, (end) => String(Number(end) + 60))],
  ['that was issued later', issueLinksTicket([secret], session, now + 600_000)],
  ['without a proof', '1795339600'],
  ['of another kind', `1795339600.${linksKey(secret, session)}`],
  ['that is empty', ''],
])('a ticket %s is not valid', (_, ticket) => expect(isLinksTicket(ticket, secret, session, now)).toBe(false))
