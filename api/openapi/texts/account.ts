/** The account, its usage and its payments. */
import { activeSession, entitlement, usage, user } from '../example-objects.ts'
import type { OperationTexts } from '../operation-text.ts'

export const accountTexts: OperationTexts = {
  'GET /auth/session': {
    id: 'getAccountSummary',
    description:
      'Everything that a client shows after a sign-in, in one request: the user, what the account may use, the relay time of the cycle, and the oldest live relay. With `view=dock` the reply contains no secret.',
    replies: {
      200: {
        owner: {
          summary: 'With a live relay',
          value: {
            user: { ...user, stream_token: 'q7Yx2mKd9RfT4wZb' },
            entitlement,
            usage,
            active_relay: activeSession,
          },
        },
      },
    },
  },
  'GET /auth/sessions': {
    id: 'listAuthSessions',
    description:
      'Where the account is signed in: at most 100 auth sessions, the most recently used first. `current` marks the one of the access token.',
  },
  'DELETE /auth/sessions/{id}': {
    id: 'revokeAuthSession',
    description: 'Ends a sign-in of the account, whose tokens stop working at once. Safe to repeat.',
  },
  'GET /auth/account': {
    id: 'getAccountSecurity',
    description:
      'What proves the owner of the account before a change, and until when a scheduled deletion can be withdrawn.',
  },
  'POST /auth/sessions/revoke-others': {
    id: 'revokeOtherAuthSessions',
    description:
      'Ends every sign-in of the account but that of the access token. Returns their number. Safe to repeat.',
  },
  'POST /auth/password/change': {
    id: 'changePassword',
    description:
      'Sets a new password and ends every other sign-in of the account. The current password is required; an account without one gets its first password by a reset link.',
  },
  'POST /auth/email/change': {
    id: 'requestEmailChange',
    description:
      'Mails a link to the new address, and the address changes when the link is opened. The reply does not reveal whether the address is taken. The password is required, or a recent sign-in for an account without one.',
  },
  'POST /auth/email/change/confirm': {
    id: 'confirmEmailChange',
    description:
      'Changes the address with the token of the mailed link, which works once. Refused if another account has the address by then.',
  },
  'GET /auth/account/export': {
    id: 'exportAccount',
    description:
      'Everything that is stored about the account, by table, as a file. Secrets are left out. Requires a sign-in that is at most 10 minutes old.',
    replies: {
      200: {
        account: {
          summary: 'The data of a new account',
          value: {
            user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364',
            exported_at: '2026-08-01T18:00:00.000Z',
            tables: {
              notification_settings: [
                {
                  user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364',
                  kind: 'payment_failed',
                  channel: 'email',
                  enabled: false,
                  enabled_at: '2026-07-15T09:30:00+00:00',
                },
              ],
            },
          },
        },
      },
    },
  },
  'POST /auth/account/delete': {
    id: 'scheduleDeletion',
    description:
      'Ends the relays of the account, cancels its subscriptions and ends its other sign-ins at once. The account itself is deleted at `deletion_due_at`; until then the deletion can be withdrawn. Safe to repeat.',
    replies: {
      200: { scheduled: { summary: 'Scheduled', value: { deletion_due_at: '2026-08-08T18:30:00.000Z' } } },
    },
  },
  'POST /auth/account/restore': {
    id: 'withdrawDeletion',
    description: 'Withdraws the scheduled deletion. Cancelled subscriptions stay cancelled. Safe to repeat.',
  },
  'GET /auth/activity': {
    id: 'listActivityWithRelays',
    description:
      'The audit entries of the account together with the starts and ends of its relays, newest first, all or of one group.',
  },
  'GET /auth/audit': {
    id: 'listActivity',
    description:
      'What happened to the account and who did it, newest first, 50 entries a page. The addresses and notes of operators are left out.',
  },
  'POST /user/regenerate-tokens': {
    id: 'regenerateStreamToken',
    description: 'Reserved. Always 501 `not_available`.',
  },
  'GET /usage/current': {
    id: 'getUsage',
    description:
      'The relay time of the current cycle: the billing period of the plan, or the calendar month in UTC. `enforcement` says whether starts are refused once it is used up; running relays continue in any case.',
  },
  'GET /usage/days': {
    id: 'getUsageByDay',
    description:
      'The relay time of the current cycle for each day in UTC and each connection, with a forecast to the end of the cycle at the average pace so far.',
  },
  'GET /mailbox': {
    id: 'listMails',
    description:
      'The latest 100 mails, for development: they are kept readable instead of being sent. 404 unless `SVC_MAILBOX` is set.',
    replies: {
      200: {
        mails: {
          summary: 'A mail with a link',
          value: {
            mails: [
              {
                id: '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90',
                to: 'streamer@example.com',
                subject: 'Verify your email address',
                text: 'Open this link within 24 hours: http://localhost:8081/verify-email?token=example',
                link: 'http://localhost:8081/verify-email?token=example',
                created_at: '2026-08-01T18:00:00.000Z',
              },
            ],
          },
        },
      },
    },
  },
  'POST /billing/checkout': {
    id: 'createCheckout',
    description:
      "Creates a payment page at the billing provider and returns its address for the browser. Nothing changes until the provider's webhook arrives. `addons` is the total that the account should have; the page sells the missing ones. Refused with `already_subscribed` if nothing is missing.",
    requests: {
      plan: { summary: 'Buy the plan', value: { plan: 'paid' } },
      addons: { summary: 'Have two add-ons', value: { addons: 2 } },
    },
    replies: {
      200: {
        page: {
          summary: 'A payment page',
          value: { checkout_url: 'https://relay.example.com/sandbox/checkout?session=cs_1042' },
        },
      },
    },
  },
  'GET /billing/subscription': {
    id: 'getPlan',
    description:
      'The plan with its add-ons, when it renews or ends, and the subscriptions at billing providers that have not ended.',
  },
  'POST /billing/subscriptions/{subscription_id}/cancel': {
    id: 'cancelSubscription',
    description:
      'Cancels at the billing provider. The subscription ends with its paid period, or at once if a payment is outstanding. Safe to repeat.',
  },
  'POST /billing/portal': {
    id: 'createPortalLink',
    description:
      'Returns the address of a page where the caller manages payments. It is personal and expires within minutes: request it when the user opens it. 404 without subscriptions.',
  },
  'POST /billing/webhook': {
    id: 'receiveBillingEvent',
    description:
      "For the configured billing provider. The signature covers the bytes of the body as they are sent, so any content type is accepted. 200 means that the event is stored, also if it is repeated, unknown or of an unknown account; the account's plan follows after the reply. Safe to repeat.\n\n| provider | signature |\n|---|---|\n| sandbox | `webhook-id`, `webhook-timestamp` and `webhook-signature`, as in Standard Webhooks 1.0 |\n| Stripe | `Stripe-Signature` |\n| Lemon Squeezy | `X-Signature` |",
    headers: {
      'webhook-id': 'Sandbox: the unique id of the event.',
      'webhook-timestamp': 'Sandbox: seconds since 1970, at most 300 seconds from the present.',
      'webhook-signature':
        'Sandbox: `v1,` and the HMAC-SHA256 of `<id>.<timestamp>.<body>` in base64. Several signatures are separated by spaces.',
      'Stripe-Signature':
        'Stripe: `t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>" in hexadecimal>`, at most 300 seconds old.',
      'X-Signature': 'Lemon Squeezy: the HMAC-SHA256 of the body in hexadecimal.',
    },
    requests: {
      sandbox: {
        summary: 'Sandbox: a plan begins',
        value: {
          type: 'subscription.activated',
          occurred_at: '2026-08-01T18:00:00.000Z',
          data: { user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364', subscription_id: 'sub_1042', kind: 'plan' },
        },
      },
      stripe: {
        summary: 'Stripe: a subscription changes',
        value: {
          id: 'evt_1042',
          type: 'customer.subscription.updated',
          created: 1785607200,
          livemode: false,
          data: { object: { id: 'sub_1042', object: 'subscription', status: 'active' } },
        },
      },
      lemonsqueezy: {
        summary: 'Lemon Squeezy: a subscription changes',
        value: {
          meta: {
            event_name: 'subscription_updated',
            custom_data: { user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364' },
          },
          data: { type: 'subscriptions', id: '1042', attributes: { status: 'active' } },
        },
      },
    },
    replies: { 200: { stored: { summary: 'The event is stored', value: { received: true } } } },
  },
  'GET /billing/sandbox/subscriptions': {
    id: 'listSandboxSubscriptions',
    description:
      "The caller's subscriptions at the sandbox, oldest first, with the outcomes that are possible now. 404 with another billing provider.",
  },
  'POST /billing/sandbox/subscriptions/{subscription_id}/{outcome}': {
    id: 'playSandboxOutcome',
    description:
      'Plays something that would happen at a real provider, such as a failed payment. The reply comes once the webhook is accepted. With the `version` of an earlier reply a repeated request acts once.',
  },
}
