/** Sign-in with a password, plugin sign-in and linked accounts. */
import type { OperationTexts } from '../operation-text.ts'

const tokenSet = {
  cp_access_jwt: 'eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCJ9.eyJ1aWQiOiIwYjlhNmYzZSJ9.signature',
  refresh_token: 'rt_example_5hJk8sQw',
  token_type: 'Bearer',
  expires_in: 720,
}

const credentials = {
  owner: {
    summary: 'An address and a password',
    value: { email: 'streamer@example.com', password: 'correct horse battery staple' },
  },
}

export const signInTexts: OperationTexts = {
  'POST /auth/signup': {
    id: 'signUp',
    description:
      'Creates the account and signs in. If the service requires verified addresses, the reply is always 202 without a token set, so that it does not reveal whether the address has an account; the mailed link then leads on.\n\nA password has at least 10 characters and at most 72 bytes of UTF-8, and is not a common one. Repeating the request is refused with `email_taken`.',
    requests: credentials,
    replies: {
      201: { signed_in: { summary: 'Signed in', value: tokenSet } },
      202: { check_mail: { summary: 'A mail follows', value: {} } },
    },
  },
  'POST /auth/login': {
    id: 'signIn',
    description:
      'Opens an auth session. Unknown addresses and wrong passwords get the same reply in the same time. Besides the limit below, wrong passwords are limited for each account.',
    requests: credentials,
    replies: { 200: { signed_in: { summary: 'Signed in', value: tokenSet } } },
  },
  'POST /auth/password/forgot': {
    id: 'requestPasswordReset',
    description:
      'Mails a link that is valid for 30 minutes, if the address has an account. The reply is always 202 and does not reveal whether it has one. Safe to repeat; each request replaces the previous link.',
  },
  'POST /auth/password/reset/preview': {
    id: 'previewPasswordReset',
    description:
      'Shows what the reset changes besides the password, so that a page can say so before it asks for one. The link stays valid. Refused with `token_invalid` for a used, expired or unknown token.',
  },
  'POST /auth/password/reset': {
    id: 'resetPassword',
    description:
      'Sets the password with the token of a mailed link, and ends every auth session of the account. The token works once, within 30 minutes.',
  },
  'POST /auth/email/verify': {
    id: 'verifyEmail',
    description: 'Proves that the user receives mail at the address. The token works once, within 24 hours.',
  },
  'POST /auth/email/verify/preview': {
    id: 'previewVerification',
    description:
      'Shows whether the address of a mailed link is verified already, so that a page of an old link can say so. Changes nothing.',
  },
  'POST /auth/email/resend': {
    id: 'resendVerification',
    description: 'Mails another verification link. Does nothing if the address is verified. Safe to repeat.',
  },
  'POST /auth/refresh': {
    id: 'refreshTokens',
    description:
      'Replaces the refresh token, which lasts 30 days, and returns a new access token.\n\nA lost reply can be repeated: for 15 seconds the replaced token still works while its successor is unused. Any other use of a replaced token ends the auth session, because the token may have been stolen.',
    requests: { refresh: { summary: 'The last refresh token', value: { refresh_token: tokenSet.refresh_token } } },
    replies: { 200: { refreshed: { summary: 'A new token set', value: tokenSet } } },
  },
  'POST /auth/logout': {
    id: 'signOut',
    description: 'Ends the auth session of the access token. Both of its tokens stop working at once.',
  },
  'POST /auth/plugin/login/start': {
    id: 'startPluginLogin',
    description:
      'Starts a login attempt of 5 minutes. Open `authorize_url` in the browser of the user, show `user_code`, and poll with `poll_token`. The page in the browser shows the same code, so that the user recognises the attempt. Only the approval in the browser signs the plugin in.',
    requests: { plugin: { summary: 'A plugin', value: { client_name: 'OBS plugin' } } },
    replies: {
      201: {
        started: {
          summary: 'A login attempt',
          value: {
            login_attempt_id: 'c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
            authorize_url: 'https://relay.example.com/login?attempt=c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
            poll_token: 'poll_example_9fTz3bNc',
            user_code: 'ABCD-2345',
            expires_in: 300,
            interval: 2,
          },
        },
      },
    },
  },
  'POST /auth/plugin/login/poll': {
    id: 'pollPluginLogin',
    description:
      'Returns `pending` until the user has decided, then the token set exactly once. Poll every `interval` seconds: faster than once a second is refused with 429, and the attempt goes on.\n\nThe attempt ends after 300 seconds (410 `attempt_expired`), also if it was approved. A denied attempt is 403 `attempt_denied`; a wrong token is 404 `not_found`, like an unknown attempt.',
    requests: {
      attempt: {
        summary: 'The attempt that was started',
        value: {
          login_attempt_id: 'c51ce410-c124-4a0e-bd5b-1f2e3d4c5b6a',
          poll_token: 'poll_example_9fTz3bNc',
        },
      },
    },
    replies: {
      200: {
        pending: { summary: 'The user has not decided yet', value: { status: 'pending', interval: 2 } },
        complete: { summary: 'Approved', value: { status: 'complete', ...tokenSet } },
      },
    },
  },
  'GET /auth/plugin/login/attempts/{id}': {
    id: 'getLoginAttempt',
    description:
      'Shows which plugin asks for access, from where and since when. Any signed-in user may read an undecided attempt.',
  },
  'POST /auth/plugin/login/attempts/{id}/approve': {
    id: 'approveLoginAttempt',
    description:
      'Lets the plugin sign in to the account of the caller. Compare the code with the one that the plugin shows first. Safe to repeat.',
  },
  'POST /auth/plugin/login/attempts/{id}/deny': {
    id: 'denyLoginAttempt',
    description: 'Denies the plugin, also after an approval whose tokens it has not collected yet. Safe to repeat.',
  },
  'GET /auth/oauth/providers': {
    id: 'listOauthProviders',
    description: 'All providers that the service supports, and whether sign-in through each one is configured.',
    replies: {
      200: {
        providers: {
          summary: 'One of three is configured',
          value: {
            providers: [
              { provider: 'twitch', configured: true },
              { provider: 'google', configured: false },
              { provider: 'discord', configured: false },
            ],
          },
        },
      },
    },
  },
  'POST /auth/oauth/{provider}/start': {
    id: 'startOauth',
    description:
      'Starts an OAuth round trip. Send the browser to `authorization_url`, and keep `binding` in that browser: the callback must present it. The round trip lasts 10 minutes and can be completed once.\n\nThe intent `link` requires the access token of the account; `merge` requires the id of a merge request.',
    requests: {
      sign_in: { summary: 'Sign in', value: { intent: 'sign_in' } },
      link: { summary: 'Link to the account of the access token', value: { intent: 'link', scopes: 'identity' } },
      merge: {
        summary: 'Prove the ownership of an account',
        value: { intent: 'merge', merge_request_id: '37693cfc-7480-4e6a-a1b2-9d8c7b6a5f4e' },
      },
    },
    replies: {
      201: {
        started: {
          summary: 'The address of the provider',
          value: {
            authorization_url: 'https://id.twitch.tv/oauth2/authorize?client_id=example&state=example',
            binding: 'binding_example_2kPn8tJx',
            expires_in: 600,
          },
        },
      },
    },
  },
  'POST /auth/oauth/{provider}/callback': {
    id: 'completeOauth',
    description:
      "Exchanges the provider's code. Depending on the intent the reply is a token set, `linked`, or `merge_required`: an account with the same verified address exists, and its owner must confirm before the provider account is linked to it.\n\nA `state` that is wrong, used, expired or of another browser is refused with `token_invalid`.",
    requests: {
      callback: {
        summary: 'The parameters of the callback',
        value: {
          code: 'code_example_6mVb9cDs',
          state: 'state_example_8sWq3mNd',
          binding: 'binding_example_2kPn8tJx',
        },
      },
    },
    replies: {
      200: {
        signed_in: { summary: 'Signed in', value: { status: 'signed_in', ...tokenSet } },
        linked: { summary: 'Linked', value: { status: 'linked' } },
        merge_required: {
          summary: 'An account has the same address',
          value: {
            status: 'merge_required',
            merge_request_id: '37693cfc-7480-4e6a-a1b2-9d8c7b6a5f4e',
            merge_token: 'merge_example_7dRx1vLp',
            sign_in_methods: ['password', 'twitch'],
            expires_in: 600,
          },
        },
      },
    },
  },
  'DELETE /auth/oauth/{provider}': {
    id: 'unlinkProvider',
    description:
      'Removes the provider from the account. Refused with `last_sign_in_method` if the account could no longer be signed in to. Safe to repeat.',
  },
  'POST /auth/merge/{merge_request_id}/confirm': {
    id: 'confirmMerge',
    description:
      'Links the provider account to the existing account, after its owner has proved to be it: by the password, or by an OAuth round trip with intent `merge` through a provider that is already linked. The request lasts 10 minutes.',
    requests: {
      password: {
        summary: 'With the password',
        value: { merge_token: 'merge_example_7dRx1vLp', password: 'correct horse battery staple' },
      },
      oauth: { summary: 'After an OAuth round trip', value: { merge_token: 'merge_example_7dRx1vLp' } },
    },
  },
}
