/** Sign-up and sign-in with an email address and a password. */
import { setTimeout as sleep } from 'node:timers/promises'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Sql } from '../../db/connection.ts'
import { recordTermsAcceptance } from '../../db/identity/terms-acceptances.ts'
import { type Credentials, findCredentialsByEmail, insertUser } from '../../db/identity/users.ts'
import type { Config } from '../../platform/config/config.ts'
import { Refusal } from '../http/refusals.ts'
import { type OpenedAuthSession, openAuthSession, webClient } from './auth-sessions.ts'
import { resendVerificationLink } from './email-verification.ts'
import { countPasswordAttempt } from './login-failures.ts'
import { sendMailLink } from './mail-links.ts'
import type { PasswordClient } from './passwords.ts'
import type { Services } from './services.ts'
import { createStreamToken } from './stream-tokens.ts'
import { requirePresentTerms } from './terms.ts'

export interface PasswordCredentials {
  readonly email: string
  readonly password: string
}

interface SignUp extends PasswordCredentials {
  /** The version of the terms that the person accepts, if the page stated it. */
  readonly termsVersion: string | undefined
}

/** The client that sent the request. */
interface Origin extends PasswordClient {
  readonly userAgent: string
}

/**
 * Creates an account and mails a verification link.
 * @returns undefined where an address must be verified before the first sign-in. The result is then the same for an
 *   address that is taken; otherwise refuses with `email_taken`. Refuses with `terms_outdated`.
 */
export async function signUp(
  services: Services,
  { email, password, termsVersion }: SignUp,
  { ip, userAgent, socket }: Origin,
): Promise<OpenedAuthSession | undefined> {
  const { config, sql, passwords, recordAuditAttempt } = services
  requirePresentTerms(config, termsVersion)
  // Hashed before the address is looked up: a taken address takes as long as a free one.
  const passwordHash = await passwords.hash(password, { ip, socket })
  const responseTime = uniformResponseTime(config)
  const { account, opened } = (await sql.begin(async (tx) => {
    const account = await insertAccount(tx, services, email, passwordHash)
    if (!account.isNew) return { account }
    const { userId } = account
    await recordAuditEntry(tx, { initiator: 'user', action: 'signed_up', userId, ip, client: webClient })
    await recordTermsAcceptance(tx, userId, termsVersion)
    await sendMailLink(tx, services, 'verify_email', userId)
    if (config.requireEmailVerification) return { account }
    return { account, opened: await openAuthSession(tx, { userId, client: webClient, ip, userAgent }) }
  })) as { account: Account; opened?: OpenedAuthSession }
  if (!account.isNew)
    await recordAuditAttempt({ ...attemptParts, action: 'signup_refused', userId: account.userId, ip })
  if (config.requireEmailVerification) return responseTime.then(() => undefined)
  if (!opened) throw new Refusal('email_taken')
  return opened
}

/** Refuses with `invalid_credentials`, `account_disabled` and `rate_limited`. */
export async function signInWithPassword(
  services: Services,
  credentials: PasswordCredentials,
  { ip, userAgent, socket }: Origin,
): Promise<OpenedAuthSession> {
  const proven = await checkPassword(services, credentials, { ip, socket })
  return services.sql.begin((tx) => openAuthSession(tx, { ...proven, client: webClient, ip, userAgent }))
}

const attemptParts = { initiator: 'user', client: webClient } as const

/** Longer than the work that only some addresses cause: one more row, or a link to mail. */
const responseMillis = 50

/** Where verification is required, a response takes the same time whether or not the address has an account. */
const uniformResponseTime = ({ requireEmailVerification }: Config): Promise<unknown> =>
  requireEmailVerification ? sleep(responseMillis) : Promise.resolve()

/** Takes the same steps whether or not the address has an account. */
async function checkPassword(services: Services, { email, password }: PasswordCredentials, client: PasswordClient) {
  const { config, sql, passwords } = services
  const { ip } = client
  const attempt = await countPasswordAttempt(services, email, ip)
  const credentials = await findCredentialsByEmail(sql, email)
  const isRight = await passwords.matches(password, credentials?.passwordHash, client).catch(async (error: unknown) => {
    await attempt.refund()
    throw error
  })
  if (!credentials?.passwordHash || !isRight) return refuseSignIn(services, credentials, 'sign_in_failed', ip)
  // Refused, counted and answered like a wrong password: a difference would reveal, right after a sign-up, that the
  // address was free.
  if (config.requireEmailVerification && !credentials.isEmailVerified)
    return refuseSignIn(services, credentials, 'sign_in_unverified', ip)
  await attempt.refund()
  if (credentials.isDisabled) throw new Refusal('account_disabled')
  return { userId: credentials.userId, provenPasswordHash: credentials.passwordHash }
}

/** The same message for every refusal where verification is required. It also helps a user who has just signed up. */
const verifyFirstMessage =
  'The email address or password is incorrect. If you have just signed up, check your email and verify your address first.'

/** Mails the verification link again where it is missing: requesting one needs a sign-in. */
async function refuseSignIn(
  services: Services,
  credentials: Credentials | undefined,
  action: 'sign_in_failed' | 'sign_in_unverified',
  ip: string,
): Promise<never> {
  const { config, recordAuditAttempt } = services
  const responseTime = uniformResponseTime(config)
  const userId = credentials?.userId
  if (config.requireEmailVerification)
    await resendVerificationLink(services, action === 'sign_in_unverified' ? userId : undefined)
  await recordAuditAttempt({ ...attemptParts, action, userId, ip })
  await responseTime
  throw new Refusal('invalid_credentials', {
    message: config.requireEmailVerification ? verifyFirstMessage : undefined,
  })
}

const streamTokenAttemptsMax = 5

interface Account {
  readonly userId: string
  /** False if this is the existing account with the address. */
  readonly isNew: boolean
}

async function insertAccount(sql: Sql, { sealing }: Services, email: string, passwordHash: string): Promise<Account> {
  for (let attempt = 1; attempt <= streamTokenAttemptsMax; attempt += 1) {
    const userId = await insertUser(sql, sealing, { email, passwordHash, streamToken: createStreamToken() })
    if (userId) return { userId, isNew: true }
    const existing = await findCredentialsByEmail(sql, email)
    if (existing) return { userId: existing.userId, isNew: false }
  }
  throw new Error(`${streamTokenAttemptsMax} random stream tokens in a row are in use`)
}
