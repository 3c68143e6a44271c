/** Sign-up and sign-in with an email address and a password. */
import { z } from 'zod'
import { accepted, created, ok, route } from '../../http/route.ts'
import { EmailAddress, EmptyObject } from '../../http/schemas.ts'
import { signInWithPassword, signUp } from '../../identity/password-accounts.ts'
import { NewPassword } from '../../identity/passwords.ts'
import { createTokenSet, TokenSet } from '../../identity/token-sets.ts'

export const signup = route.none({
  summary: 'Create an account',
  secret: true,
  body: z.object({ email: EmailAddress, password: NewPassword }),
  answers: { 201: TokenSet, 202: EmptyObject },
  refuses: ['email_taken'],
  handle: async ({ body, ip, userAgent, incoming: { socket } }, services) => {
    const opened = await signUp(services, body, { ip, userAgent, socket })
    return opened ? created(await createTokenSet(services, opened)) : accepted()
  },
})

export const login = route.none({
  summary: 'Sign in with a password',
  secret: true,
  body: z.object({ email: EmailAddress, password: z.string() }),
  answers: { 200: TokenSet },
  refuses: ['invalid_credentials', 'account_disabled'],
  handle: async ({ body, ip, userAgent, incoming: { socket } }, services) =>
    ok(await createTokenSet(services, await signInWithPassword(services, body, { ip, userAgent, socket }))),
})
