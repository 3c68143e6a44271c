/** The texts and markup of all mails. */
import { expect, test } from 'vitest'
import type { Mail, NotificationMail, WithdrawalMail } from '../../../providers/mail/mail.ts'
import { renderHtml, renderText } from '../../../providers/mail/render.ts'
import { composeMail } from '../../../providers/mail/texts.ts'

const common = { to: 'jane@example.com', link: 'https://backhaul.example/page?token=secret&a=b' }
const expiresAt = '2026-12-04T15:06:00Z'
const notification: NotificationMail = {
  ...common,
  subject: 'notification',
  title: 'Relay ended',
  paragraphs: ['The relay “main” ended.'],
  linkText: 'Open your relays',
  unsubscribeLink: 'https://backhaul.example/unsubscribe?token=other',
}
const withdrawal: WithdrawalMail = {
  ...common,
  subject: 'withdrawal_received',
  withdrawalId: '37693cfc-7480-4e6a-a1b2-9d8c7b6a5f4e',
  item: 'the paid plan',
  subscriptionId: 'sub_1042',
  purchasedAt: '2026-11-28T10:00:00Z',
  receivedAt: '2026-12-03T14:05:00Z',
  name: 'Kim Example',
}
const mails: readonly Mail[] = [
  { ...common, subject: 'verify_email', expiresAt },
  { ...common, subject: 'reset_password', expiresAt },
  { ...common, subject: 'change_email', expiresAt },
  { ...common, subject: 'email_changed' },
  { ...common, subject: 'password_changed' },
  { ...common, subject: 'password_reset' },
  { ...common, subject: 'sign_in_method_added', methods: ['google'] },
  { ...common, subject: 'sign_in_method_removed', methods: ['password', 'twitch'] },
  { ...common, subject: 'billing_mails_enabled' },
  withdrawal,
  { ...common, subject: 'account_deletion_scheduled', deletedAt: '2026-12-03T14:05:00Z' },
  notification,
]

test.each(mails)('the mail $subject has a title, the brand and its link once in each part', (mail) => {
  const text = composeMail(mail, 'Brandy')
  expect(text.title).not.toBe('')
  expect(renderText(text, 'Brandy').split(mail.link)).toHaveLength(2)
  const html = renderHtml(text, 'Brandy')
  expect(html.split('https://backhaul.example/page?token=secret&amp;a=b')).toHaveLength(2)
  for (const part of [renderText(text, 'Brandy'), html]) expect(part).toContain('Brandy')
})

test('a mail loads nothing', () => {
  for (const mail of mails)
    expect(renderHtml(composeMail(mail, 'Backhaul'), 'Backhaul')).not.toMatch(/<(img|link|script|iframe)|url\(/)
})

test('markup in any text appears as text', () => {
  const evil = '<img src=x onerror=alert(1)>&"\''
  const mail = {
    ...notification,
    to: `${evil}@example.com`,
    title: evil,
    paragraphs: [evil],
    linkText: evil,
    link: `https://a.example/"><b>${evil}`,
  }
  const html = renderHtml(composeMail(mail, evil), evil)
  expect(html).not.toMatch(/<img|<b>|"><b/)
  expect(html.split('&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#39;').length).toBeGreaterThan(4)
})

test('the text of a mail with a proof has the time at which its link expires', () => {
  for (const mail of mails.slice(0, 3))
    expect(renderText(composeMail(mail, 'Backhaul'), 'Backhaul')).toContain('4 December 2026, 15:06 UTC')
})

test('a mail of a deletion names its day, and a notification how to turn it off', () => {
  const [deletion, notified] = mails.slice(-2).map((mail) => renderText(composeMail(mail, 'Backhaul'), 'Backhaul'))
  expect(deletion).toContain('3 December 2026, 14:05 UTC')
  expect(notified).toContain(notification.unsubscribeLink)
})

test('a mail about ways to sign in names them', () => {
  const textOf = (subject: Mail['subject']) => {
    const mail = mails.find((candidate) => candidate.subject === subject)
    return mail && renderText(composeMail(mail, 'Backhaul'), 'Backhaul').replaceAll(/\s+/g, ' ')
  }
  expect(textOf('sign_in_method_added')).toContain('Google can be used to sign in')
  expect(textOf('sign_in_method_removed')).toContain('a password and Twitch can no longer be used to sign in')
})

test('the receipt of a withdrawal repeats what was stated, and says when it arrived', () => {
  const textOf = (mail: WithdrawalMail) => renderText(composeMail(mail, 'Backhaul'), 'Backhaul').replaceAll(/\s+/g, ' ')
  const text = textOf(withdrawal)
  expect(text).toContain(
    '“I withdraw from the contract for the paid plan (sub_1042), bought on 28 November 2026, 10:00 UTC.”',
  )
  expect(text).toContain('It is from Kim Example, and arrived at Backhaul on 3 December 2026, 14:05 UTC.')
  expect(text).toContain(withdrawal.withdrawalId)
  expect(textOf({ ...withdrawal, name: null })).toContain('It arrived at Backhaul on 3 December 2026')
})
