/** Accounts by email and password: opening one, and signing in to it. */
import { z } from 'zod'
import { audit } from '../db/audit.ts'
import type { Sql } from '../db/connection.ts'
import { credentialsByEmail, insertUser } from '../db/users.ts'
import { parseEmailAddress } from '../platform/email-address.ts'
import { openAuthSession, siteClient, TokenSet, tokenSet } from './auth-sessions.ts'
import { sendVerification } from './email-verification.ts'
import { countTry } from './login-failures.ts'
import { mailLink } from './mail-links.ts'
import { NewPassword } from './passwords.ts'
import { Refusal } from './refusals.ts'
import { accepted, created, ok, route } from './route.ts'
import { Nothing } from './schemas.ts'
import type { Services } from './services.ts'
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
    const { config, sql, passwords } = services
    // Before anything is looked up: a taken address costs the same work as a free one.
    const passwordHash = await passwords.hash(body.password)
    const opened = await sql.begin(async (tx) => {
      const userId = await insertAccount(tx, services, body.email, passwordHash)
      await audit(tx, {
        actor: 'user',
        action: userId ? 'signed_up' : 'signup_refused',
        userId,
        ip,
        client: siteClient,
      })
      if (userId) await mailLink(tx, services, 'verify_email', userId)
      if (config.requireEmailVerification || !userId) return undefined
      return openAuthSession(tx, { userId, client: siteClient, ip, userAgent })
    })
    if (config.requireEmailVerification) return accepted()
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
  refuses: ['invalid_credentials', 'account_disabled', 'email_not_verified'],
  handle: async ({ body, ip, userAgent }, services) => {
    const userId = await proveAccount(services, body, ip)
    const opened = await services.sql.begin((tx) =>
      openAuthSession(tx, { ...userId, client: siteClient, ip, userAgent }),
    )
    return ok(await tokenSet(services, opened))
  },
})

/** The account that the password opens. Takes the same steps whether the address has one or not. */
async function proveAccount(services: Services, typed: { email: string; password: string }, ip: string) {
  const { config, sql, passwords } = services
  const counted = await countTry(services, typed.email, ip)
  const credentials = await credentialsByEmail(sql, typed.email)
  const right = await passwords.matches(typed.password, credentials?.passwordHash).catch(async (error: unknown) => {
    await counted.forgive()
    throw error
  })
  if (!credentials?.passwordHash || !right) {
    await audit(sql, { actor: 'user', action: 'sign_in_failed', userId: credentials?.userId, ip, client: siteClient })
    throw new Refusal('invalid_credentials')
  }
  await counted.forgive()
  if (credentials.disabled) throw new Refusal('account_disabled')
  if (config.requireEmailVerification && !credentials.emailVerified) {
    // The first link may be lost or over, and without a sign-in there is no way to ask for another.
    await sendVerification(services, credentials.userId)
    throw new Refusal('email_not_verified')
  }
  return { userId: credentials.userId, provenPasswordHash: credentials.passwordHash }
}

const streamTokenTries = 5

/** Answers the new account's id, or nothing when the address has one. */
async function insertAccount(
  sql: Sql,
  { sealing }: Services,
  email: string,
  passwordHash: string,
): Promise<string | undefined> {
  for (let tries = 0; tries < streamTokenTries; tries += 1) {
    const userId = await insertUser(sql, sealing, { email, passwordHash, streamToken: newStreamToken() })
    if (userId) return userId
    if (await credentialsByEmail(sql, email)) return undefined
  }
  throw new Error(`none of ${streamTokenTries} random stream tokens was free`)
}
