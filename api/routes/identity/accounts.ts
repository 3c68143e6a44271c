/** Sign-up and sign-in with an email address and a password. */
import { z } from 'zod'
import { accepted, created, ok } from '../../http/replies.ts'
import { EmptyObject } from '../../http/schemas.ts'
import { signInWithPassword, signUp } from '../../identity/password-accounts.ts'
import { NewPassword } from '../../identity/passwords.ts'
import { TermsVersion } from '../../identity/terms.ts'
import { createTokenSet, exampleTokenSet, TokenSet } from '../../identity/token-sets.ts'
import { route } from '../route.ts'
import { EmailAddress } from '../schemas.ts'

const exampleCredentials = {
  owner: {
    summary: 'An address and a password',
    value: { email: 'streamer@example.com', password: 'correct horse battery staple' },
  },
}

export const signup = route.none({
  id: 'signUp',
  summary: 'Create an account',
  description:
    'Creates the account and signs in. If the service requires verified addresses, the reply is always 202 without a token set, so that it does not reveal whether the address has an account; the mailed link then leads on.\n\nA password has at least 10 characters and at most 72 bytes of UTF-8, and is not a common one. Repeating the request is refused with `email_taken`.',
  secret: true,
  body: z.object({ email: EmailAddress, password: NewPassword, terms_version: TermsVersion }),
  answers: { 201: TokenSet, 202: EmptyObject },
  refuses: ['email_taken', 'terms_outdated'],
  examples: {
    requests: exampleCredentials,
    replies: {
      201: { signed_in: { summary: 'Signed in', value: exampleTokenSet } },
      202: { check_mail: { summary: 'A mail follows', value: {} } },
    },
  },
  handle: async ({ body, ip, userAgent, incoming: { socket } }, services) => {
    const { terms_version: termsVersion, ...credentials } = body
    const opened = await signUp(services, { ...credentials, termsVersion }, { ip, userAgent, socket })
    return opened ? created(await createTokenSet(services, opened)) : accepted()
  },
})

export const login = route.none({
  id: 'signIn',
  summary: 'Sign in with a password',
  description:
    'Opens an auth session. Unknown addresses and wrong passwords get the same reply in the same time. Besides the limit below, wrong passwords are limited for each account.',
  secret: true,
  body: z.object({ email: EmailAddress, password: z.string() }),
  answers: { 200: TokenSet },
  refuses: ['invalid_credentials', 'account_disabled'],
  examples: {
    requests: exampleCredentials,
    replies: { 200: { signed_in: { summary: 'Signed in', value: exampleTokenSet } } },
  },
  handle: async ({ body, ip, userAgent, incoming: { socket } }, services) =>
    ok(await createTokenSet(services, await signInWithPassword(services, body, { ip, userAgent, socket }))),
})
