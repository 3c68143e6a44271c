/** The texts of all mails. */
import type {
  AnnouncementMail,
  DeletionMail,
  Mail,
  NotificationMail,
  ProofMail,
  SecurityMail,
  SignInMethodMail,
  SignInMethodName,
  WithdrawalMail,
} from './mail.ts'

/** A mail as plain text. Every part may contain any character but line breaks. */
export interface MailText {
  readonly title: string
  readonly paragraphs: readonly string[]
  readonly link: { readonly text: string; readonly url: string }
  /** Below the link. */
  readonly notes: readonly string[]
  readonly unsubscribeLink?: string
}

/** @param brandName the name of the service. */
export function composeMail(mail: Mail, brandName: string): MailText {
  switch (mail.subject) {
    case 'verify_email':
    case 'change_email':
    case 'reset_password':
      return proofTexts[mail.subject](mail, brandName)
    case 'email_changed':
    case 'password_changed':
    case 'password_reset':
      return securityTexts[mail.subject](mail, brandName)
    case 'sign_in_method_added':
    case 'sign_in_method_removed':
      return signInMethodText(mail, brandName)
    case 'billing_mails_enabled':
      return announcementText(mail, brandName)
    case 'account_deletion_scheduled':
      return deletionText(mail, brandName)
    case 'withdrawal_received':
      return withdrawalText(mail, brandName)
    case 'notification':
      return notificationText(mail, brandName)
  }
}

const proofTexts: Readonly<Record<ProofMail['subject'], (mail: ProofMail, brandName: string) => MailText>> = {
  verify_email: ({ to, link, expiresAt }, brandName) => ({
    title: 'Verify your email address',
    paragraphs: [
      `Someone, probably you, created a ${brandName} account with the address ${to}.`,
      'Verify that the address is yours to complete the account.',
    ],
    link: { text: 'Verify this address', url: link },
    notes: [describeValidity(expiresAt), 'If you did not create an account, ignore this email.'],
  }),
  change_email: ({ to, link, expiresAt }, brandName) => ({
    title: 'Confirm your new email address',
    paragraphs: [
      `You asked to use ${to} for your ${brandName} account. Until you confirm it, the account keeps its present address.`,
    ],
    link: { text: 'Use this address', url: link },
    notes: [describeValidity(expiresAt), 'If you did not ask for this, ignore this email: nothing changes.'],
  }),
  reset_password: ({ to, link, expiresAt }, brandName) => ({
    title: 'Reset your password',
    paragraphs: [`Someone, probably you, asked to reset the password of the ${brandName} account of ${to}.`],
    link: { text: 'Choose a new password', url: link },
    notes: [
      describeValidity(expiresAt),
      'If you did not ask for this, ignore this email: your password stays as it is.',
    ],
  }),
}

const securityTexts: Readonly<Record<SecurityMail['subject'], (mail: SecurityMail, brandName: string) => MailText>> = {
  email_changed: ({ to, link }, brandName) => ({
    title: 'Your email address was changed',
    paragraphs: [
      `The email address of your ${brandName} account was changed. ${to} no longer belongs to it, and this is the last email to this address.`,
    ],
    link: { text: 'Get help', url: link },
    notes: ['If you did not change it, someone else has access to your account: contact us at once.'],
  }),
  password_changed: ({ to, link }, brandName) => ({
    title: 'Your password was changed',
    paragraphs: [`The password of the ${brandName} account of ${to} was changed.`],
    link: { text: 'Check your account', url: link },
    notes: ['If you did not change it, reset your password now: that also signs out everyone else.'],
  }),
  password_reset: ({ to, link }, brandName) => ({
    title: 'Your password was reset',
    paragraphs: [
      `A new password was set for the ${brandName} account of ${to}, with a link that was emailed to you. Everyone was signed out.`,
    ],
    link: { text: 'Check your account', url: link },
    notes: [
      'If you did not do this, someone else reads your email: secure your mailbox first, then reset your password again.',
    ],
  }),
}

const methodNames: Readonly<Record<SignInMethodName, string>> = {
  password: 'a password',
  twitch: 'Twitch',
  google: 'Google',
  discord: 'Discord',
}

function signInMethodText({ subject, to, link, methods }: SignInMethodMail, brandName: string): MailText {
  const names = methods.map((method) => methodNames[method]).join(' and ')
  const isAdded = subject === 'sign_in_method_added'
  return {
    title: isAdded ? 'A way to sign in was added' : 'A way to sign in was removed',
    paragraphs: [
      isAdded
        ? `From now on ${names} can be used to sign in to the ${brandName} account of ${to}.`
        : `From now on ${names} can no longer be used to sign in to the ${brandName} account of ${to}.`,
    ],
    link: { text: 'Check your account', url: link },
    notes: [
      'If you did not do this, reset your password now: that also signs out everyone else and removes ways to sign in that are not yours.',
    ],
  }
}

const deletionText = ({ to, link, deletedAt }: DeletionMail, brandName: string): MailText => ({
  title: 'Your account will be deleted',
  paragraphs: [
    `You asked to delete the ${brandName} account of ${to}.`,
    `It will be deleted on ${formatTime(deletedAt)}, with everything in it. Until then you can keep it.`,
  ],
  link: { text: 'Keep my account', url: link },
  notes: ['If you did not ask for this, sign in, keep the account, and change your password.'],
})

const withdrawalText = (mail: WithdrawalMail, brandName: string): MailText => ({
  title: 'We have received your withdrawal',
  paragraphs: [
    `Your statement: “I withdraw from the contract for ${mail.item} (${mail.subscriptionId}), bought on ${formatTime(mail.purchasedAt)}.”`,
    `${mail.name === null ? 'It' : `It is from ${mail.name}, and`} arrived at ${brandName} on ${formatTime(mail.receivedAt)}. Its number is ${mail.withdrawalId}.`,
    'We refund what you have paid for this contract, within 14 days and by the same means of payment. Your access ends with the refund, and you are not charged again.',
  ],
  link: { text: 'See your withdrawal', url: mail.link },
  notes: ['This email is your receipt: keep it.'],
})

const announcementText = ({ link }: AnnouncementMail, brandName: string): MailText => ({
  title: 'Emails about payments are now on',
  paragraphs: [
    `${brandName} now emails you when a payment fails, when your plan is about to end, and when relays are about to end: because your plan no longer includes them, or because they have run for a long time.`,
    'You can turn off each of these. Emails about the security of your account, such as a changed password, are always sent.',
  ],
  link: { text: 'Choose your notifications', url: link },
  notes: ['You get this email once, because your account is older than this change.'],
})

const notificationText = (mail: NotificationMail, brandName: string): MailText => ({
  title: mail.title,
  paragraphs: mail.paragraphs,
  link: { text: mail.linkText, url: mail.link },
  notes: [`You get this email because these notifications are on in your ${brandName} account.`],
  unsubscribeLink: mail.unsubscribeLink,
})

const describeValidity = (expiresAt: string): string => `The link works once, until ${formatTime(expiresAt)}.`

/** `3 December 2026, 14:05 UTC`. */
const formatTime = (text: string): string => {
  const at = new Date(text)
  const day = at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' })
  return `${day}, ${at.toISOString().slice(11, 16)} UTC`
}
