/**
 * Mails about changes that another person may have made. They are sent whatever the account has turned off, and to a
 * verified address only: the owner of another one may never have heard of the account.
 */
import type { Sql } from '../../db/connection.ts'
import { listSignInMethods, type SignInMethod } from '../../db/identity/oauth-accounts.ts'
import { findVerifiedEmail } from '../../db/identity/users.ts'
import type { DeletionMail, SecurityMail, SignInMethodMail } from '../../providers/mail/mail.ts'
import type { Services } from './services.ts'

/** The page of the site that each mail leads to. */
const pages = {
  email_changed: 'help',
  password_changed: 'forgot-password',
  password_reset: 'account/security',
  sign_in_method_added: 'account/security',
  sign_in_method_removed: 'account/security',
  account_deletion_scheduled: 'account/security',
} as const

type WithoutAddress<M> = M extends unknown ? Omit<M, 'to' | 'link'> : never
type SecurityNews = WithoutAddress<SecurityMail | SignInMethodMail | DeletionMail>

/**
 * Runs in the transaction of the change, after it. Does nothing for an account without a verified address.
 * @param to the verified address before the change, where the change is that of the address.
 */
export async function sendSecurityMail(
  tx: Sql,
  { config, mailer }: Pick<Services, 'config' | 'mailer'>,
  userId: string,
  news: SecurityNews,
  to?: string | null,
): Promise<void> {
  const address = to === undefined ? await findVerifiedEmail(tx, userId) : to
  if (address !== null)
    await mailer.send(tx, userId, { ...news, to: address, link: `${config.siteUrl}/${pages[news.subject]}` })
}

/**
 * Mails which sign-in methods a transaction has added and removed.
 * @param before the methods before it.
 */
export async function mailMethodChanges(
  sql: Sql,
  services: Pick<Services, 'config' | 'mailer'>,
  userId: string,
  before: readonly SignInMethod[],
): Promise<void> {
  const after = await listSignInMethods(sql, userId)
  for (const [subject, methods] of [
    ['sign_in_method_removed', before.filter((method) => !after.includes(method))],
    ['sign_in_method_added', after.filter((method) => !before.includes(method))],
  ] as const)
    if (methods.length > 0) await sendSecurityMail(sql, services, userId, { subject, methods })
}
