/** Every answer that is not a success, in one table: the code is the contract, status and sentence stand beside it. */

interface RefusalText {
  readonly status: number
  readonly message: string
}

export const refusals = {
  invalid_request: { status: 400, message: 'The request is not valid.' },
  idempotency_key_required: {
    status: 400,
    message: 'Send an Idempotency-Key header with a fresh UUIDv4 for each new start.',
  },
  idempotency_key_invalid: { status: 400, message: 'The Idempotency-Key header is not a UUIDv4.' },
  token_invalid: { status: 400, message: 'This link or token is not valid any more.' },
  unauthorized: { status: 401, message: 'Sign in: the access token is missing, expired or revoked.' },
  invalid_credentials: { status: 401, message: 'The email address or the password is not right.' },
  invalid_refresh_token: { status: 401, message: 'The refresh token is not valid any more: sign in again.' },
  invalid_signature: { status: 401, message: 'The signature does not match.' },
  invalid_relay_auth: { status: 401, message: 'The X-Relay-Auth header is missing or wrong.' },
  invalid_operator: { status: 401, message: 'The operator name or password is not right.' },
  relay_access_denied: { status: 403, message: 'Your plan does not include managed relays.' },
  relay_limit_reached: {
    status: 403,
    message: 'All relays of your plan are in use: stop one, or add one to your plan.',
  },
  usage_exhausted: { status: 403, message: 'The relay time of this cycle is used up.' },
  attempt_denied: { status: 403, message: 'The sign-in was denied in the browser.' },
  email_not_verified: { status: 403, message: 'Verify your email address first.' },
  account_disabled: { status: 403, message: 'This account is disabled. Ask support.' },
  forbidden: { status: 403, message: 'This is not allowed.' },
  not_found: { status: 404, message: 'There is no such thing here.' },
  method_not_allowed: { status: 405, message: 'This path does not take that method.' },
  payload_too_large: { status: 413, message: 'The request body is too large.' },
  unsupported_media_type: { status: 415, message: 'Send JSON, with Content-Type: application/json.' },
  invalid_transition: { status: 409, message: 'The relay session cannot make that move from its present state.' },
  instance_mismatch: { status: 409, message: 'The relay session is bound to another instance.' },
  email_taken: { status: 409, message: 'There is an account with this email address already.' },
  provider_already_linked: { status: 409, message: 'This sign-in is linked to an account already.' },
  last_sign_in_method: { status: 409, message: 'This is the only way to sign in to the account: add another first.' },
  already_subscribed: { status: 409, message: 'The account has this already.' },
  attempt_expired: { status: 410, message: 'The sign-in took longer than 5 minutes: start it again.' },
  attempt_consumed: { status: 410, message: 'This sign-in was completed already: start a new one.' },
  merge_expired: { status: 410, message: 'Linking took longer than 10 minutes: start it again.' },
  idempotency_key_reused: {
    status: 422,
    message: 'This Idempotency-Key was used for another request: make a fresh one.',
  },
  rate_limited: { status: 429, message: 'Too many requests: wait for the seconds in Retry-After.' },
  internal_error: {
    status: 500,
    message: 'Something went wrong on our side. Quote the X-Request-Id header when you report it.',
  },
  not_available: { status: 501, message: 'This is not available yet.' },
  billing_provider_error: {
    status: 502,
    message: 'The billing provider did not answer as it should: try again in a moment.',
  },
  temporarily_unavailable: { status: 503, message: 'The service is not available for a moment: try again.' },
  capacity_exhausted: { status: 503, message: 'The region is full: choose another one, or try again later.' },
} as const satisfies Record<string, RefusalText>

export type RefusalCode = keyof typeof refusals

interface RefusalOptions {
  /** Replaces the message of the table; shown to the caller. */
  readonly message?: string | undefined
  /** Response header fields, such as `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Thrown by a handler or by anything that it calls: the request is answered with the status and the message of the code. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly headers: Readonly<Record<string, string>>

  constructor(
    readonly code: RefusalCode,
    { message = refusals[code].message, headers = {} }: RefusalOptions = {},
  ) {
    super(message)
    this.headers = headers
  }

  get status(): number {
    return refusals[this.code].status
  }

  get body() {
    return { error: { code: this.code, message: this.message } }
  }
}
