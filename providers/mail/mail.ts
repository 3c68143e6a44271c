/** The mails that the service sends. */

interface CommonParts {
  readonly to: string
  /** The only link of the text. It may contain a single-use secret. */
  readonly link: string
}

/** Proves that the user reads the mail of an address: the link contains a single-use secret. */
export interface ProofMail extends CommonParts {
  readonly subject: 'verify_email' | 'reset_password' | 'change_email'
  /** When the link stops working: a mail that could not be delivered by then is given up. RFC 3339. */
  readonly expiresAt: string
}

/** To the owner of an account, after a change that another person may have made. Nobody can turn it off. */
export interface SecurityMail extends CommonParts {
  readonly subject: 'email_changed' | 'password_changed' | 'password_reset'
}

export interface SignInMethodMail extends CommonParts {
  readonly subject: 'sign_in_method_added' | 'sign_in_method_removed'
  /** At least one. */
  readonly methods: readonly SignInMethodName[]
}

export type SignInMethodName = 'password' | 'twitch' | 'google' | 'discord'

/** Tells an account that existed before that mails about payments are on. */
export interface AnnouncementMail extends CommonParts {
  readonly subject: 'billing_mails_enabled'
}

export interface DeletionMail extends CommonParts {
  readonly subject: 'account_deletion_scheduled'
  /** When the account will be deleted. RFC 3339. */
  readonly deletedAt: string
}

/** The receipt of a withdrawal from a contract: what was stated, and when it arrived. Always sent. */
export interface WithdrawalMail extends CommonParts {
  readonly subject: 'withdrawal_received'
  readonly withdrawalId: string
  /** What was bought, such as `the paid plan`. */
  readonly item: string
  readonly subscriptionId: string
  /** RFC 3339. */
  readonly purchasedAt: string
  /** RFC 3339. */
  readonly receivedAt: string
  /** Null if none was stated. */
  readonly name: string | null
}

/** About relays, usage or payments. Its text is plain text: it may contain names that users chose. */
export interface NotificationMail extends CommonParts {
  readonly subject: 'notification'
  readonly title: string
  readonly paragraphs: readonly string[]
  readonly linkText: string
  /** Turns this kind of notification off, with one click and without a sign-in (RFC 8058). */
  readonly unsubscribeLink: string
}

export type Mail =
  | ProofMail
  | SecurityMail
  | SignInMethodMail
  | DeletionMail
  | AnnouncementMail
  | WithdrawalMail
  | NotificationMail
