/** Accounts by email and password: opening one, and signing in to it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { recordAuditEntry } from '../../db/audit.ts'
import type { Sql } from '../../db/connection.ts'
import { type Credentials, findCredentialsByEmail, insertUser } from '../../db/users.ts'
import type { Config } from '../../platform/config/config.ts'
import { parseEmailAddress } from '../../platform/email-address.ts'
import { Refusal } from '../http/refusals.ts'
import { accepted, created, ok, route } from '../http/route.ts'
import { Nothing } from '../http/schemas.ts'
import { countTry } from '../identity/login-failures.ts'
import { mailLink } from '../identity/mail-links.ts'
import { NewPassword } from '../identity/passwords.ts'
import type { Services } from '../services.ts'
import { type OpenedAuthSession, openAuthSession, siteClient, TokenSet, tokenSet } from './auth-sessions.ts'
import { sendVerification } from './email-verification.ts'
import { newStreamToken } from './stream-tokens.ts'

export const Email = z
  .string()
  .describe('An email address of at most 254 characters; its case does not matter.')
  .transform((text, context) => {
    const parsed = parseEmailAddress(text)
    if ('address' in parsed) return parsed.address
    context.addIssue({ code: 'custom', message: parsed.problem })
    return z.NEVER
  })

export const signup = route({
  method: 'POST',
  path: '/auth/signup',
  summary: 'Open an account with an email address and a password',
  caller: 'none',
  limit: 'signup',
  secret: true,
  body: z.object({ email: Email, password: NewPassword }),
  answers: { 201: TokenSet, 202: Nothing },
  refuses: ['email_taken'],
  handle: async ({ body, ip, userAgent }, services) => {
    const { config, sql, passwords, auditAttempt } = services
    // Before anything is looked up: a taken address costs the same work as a free one.
    const passwordHash = await passwords.hash(body.password, ip)
    const answerTime = equalAnswerTime(config)
    const { account, opened } = (await sql.begin(async (tx) => {
      const account = await insertAccount(tx, services, body.email, passwordHash)
      if (!account.isNew) return { account }
      const { userId } = account
      await recordAuditEntry(tx, { initiator: 'user', action: 'signed_up', userId, ip, client: siteClient })
      await mailLink(tx, services, 'verify_email', userId)
      if (config.requireEmailVerification) return { account }
      return { account, opened: await openAuthSession(tx, { userId, client: siteClient, ip, userAgent }) }
    })) as { account: Account; opened?: OpenedAuthSession }
    if (!account.isNew) await auditAttempt({ ...attemptParts, action: 'signup_refused', userId: account.userId, ip })
    if (config.requireEmailVerification) return answerTime.then(accepted)
    if (!opened) throw new Refusal('email_taken')
    return created(await tokenSet(services, opened))
  },
})

export const login = route({
  method: 'POST',
  path: '/auth/login',
  summary: 'Sign in with an email address and a password',
  caller: 'none',
  limit: 'login',
  secret: true,
  body: z.object({ email: Email, password: z.string() }),
  answers: { 200: TokenSet },
  refuses: ['invalid_credentials', 'account_disabled'],
  handle: async ({ body, ip, userAgent }, services) => {
    const userId = await proveAccount(services, body, ip)
    const opened = await services.sql.begin((tx) =>
      openAuthSession(tx, { ...userId, client: siteClient, ip, userAgent }),
    )
    return ok(await tokenSet(services, opened))
  },
})

const attemptParts = { initiator: 'user', client: siteClient } as const

/** Longer than the work takes that only some addresses cost: a row more, or a link to be mailed. */
const answerMillis = 50

/** Where verification is required, answers wait for this, so that their time does not depend on whether the address has an account. */
const equalAnswerTime = ({ requireEmailVerification }: Config): Promise<unknown> =>
  requireEmailVerification ? sleep(answerMillis) : Promise.resolve()

/** The account that the password opens. Takes the same steps whether the address has one or not. */
async function proveAccount(services: Services, typed: { email: string; password: string }, ip: string) {
  const { config, sql, passwords } = services
  const counted = await countTry(services, typed.email, ip)
  const credentials = await findCredentialsByEmail(sql, typed.email)
  const isRight = await passwords
    .matches(typed.password, credentials?.passwordHash, ip)
    .catch(async (error: unknown) => {
      await counted.forgive()
      throw error
    })
  if (!credentials?.passwordHash || !isRight) return refuseSignIn(services, credentials, 'sign_in_failed', ip)
  // Refused, counted and answered like a wrong password: any difference would show a stranger who has just signed up with
  // an address that it was free.
  if (config.requireEmailVerification && !credentials.isEmailVerified)
    return refuseSignIn(services, credentials, 'sign_in_unverified', ip)
  await counted.forgive()
  if (credentials.isDisabled) throw new Refusal('account_disabled')
  return { userId: credentials.userId, provenPasswordHash: credentials.passwordHash }
}

/** The same text for every refusal where verification is required; it shows the way on to a person who has just signed up. */
const verifyFirst =
  'The email address or password is incorrect. If you have just signed up, confirm your address first: check your email.'

/** An account that only has to be verified gets its link again: the first may be lost, and asking for another takes a sign-in. */
async function refuseSignIn(
  services: Services,
  credentials: Credentials | undefined,
  action: 'sign_in_failed' | 'sign_in_unverified',
  ip: string,
): Promise<never> {
  const { config, auditAttempt } = services
  const answerTime = equalAnswerTime(config)
  const userId = credentials?.userId
  if (config.requireEmailVerification)
    await sendVerification(services, action === 'sign_in_unverified' ? userId : undefined)
  await auditAttempt({ ...attemptParts, action, userId, ip })
  await answerTime
  throw new Refusal('invalid_credentials', { message: config.requireEmailVerification ? verifyFirst : undefined })
}

const streamTokenTries = 5

interface Account {
  readonly userId: string
  /** False when the address had an account already, which is this one. */
  readonly isNew: boolean
}

async function insertAccount(sql: Sql, { sealing }: Services, email: string, passwordHash: string): Promise<Account> {
  for (let tries = 0; tries < streamTokenTries; tries += 1) {
    const userId = await insertUser(sql, sealing, { email, passwordHash, streamToken: newStreamToken() })
    if (userId) return { userId, isNew: true }
    const holder = await findCredentialsByEmail(sql, email)
    if (holder) return { userId: holder.userId, isNew: false }
  }
  throw new Error(`none of ${streamTokenTries} random stream tokens was free`)
}
