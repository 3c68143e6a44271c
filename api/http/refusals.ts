/** All error responses. The code is part of the API contract; clients must not depend on the message. */

interface RefusalText {
  readonly status: number
  readonly message: string
}

export const refusals = {
  invalid_request: { status: 400, message: 'The request is not valid.' },
  idempotency_key_required: {
    status: 400,
    message: 'Send an Idempotency-Key header with a new UUIDv4 for each start.',
  },
  idempotency_key_invalid: { status: 400, message: 'The Idempotency-Key header is not a UUIDv4.' },
  token_invalid: { status: 400, message: 'This link or token is no longer valid.' },
  unauthorized: { status: 401, message: 'The access token is missing, expired or revoked. Sign in again.' },
  invalid_credentials: { status: 401, message: 'The email address or password is incorrect.' },
  invalid_refresh_token: { status: 401, message: 'The refresh token is no longer valid. Sign in again.' },
  invalid_signature: { status: 401, message: 'The signature does not match.' },
  invalid_relay_auth: { status: 401, message: 'The X-Relay-Auth header is missing or wrong.' },
  invalid_operator: { status: 401, message: 'The operator name or password is incorrect.' },
  relay_access_denied: { status: 403, message: 'Your plan does not include managed relays.' },
  relay_limit_reached: {
    status: 403,
    message: 'All relays of your plan are in use. Stop one, or add one to your plan.',
  },
  usage_exhausted: { status: 403, message: 'The included relay time of this cycle is used up.' },
  attempt_denied: { status: 403, message: 'The sign-in was denied in the browser.' },
  recent_sign_in_required: {
    status: 403,
    message: 'This account has no password. Sign out, sign in again, and repeat this within 10 minutes.',
  },
  email_not_verified: { status: 403, message: 'Verify your email address first.' },
  account_disabled: { status: 403, message: 'This account is disabled. Contact support.' },
  forbidden: { status: 403, message: 'This is not allowed.' },
  not_found: { status: 404, message: 'Not found.' },
  method_not_allowed: {
    status: 405,
    message: 'This path does not support this method. The Allow header lists supported methods.',
  },
  payload_too_large: { status: 413, message: 'The request body is too large.' },
  unsupported_media_type: { status: 415, message: 'Send JSON, with Content-Type: application/json.' },
  invalid_transition: {
    status: 409,
    message: 'This transition is not possible from the current state of the relay session.',
  },
  instance_mismatch: { status: 409, message: 'The relay session is bound to another instance.' },
  email_taken: { status: 409, message: 'An account with this email address already exists.' },
  password_not_set: {
    status: 409,
    message: 'This account has no password. Set one with a password reset link: POST /auth/password/forgot.',
  },
  provider_already_linked: { status: 409, message: 'This provider account is already linked to an account.' },
  last_sign_in_method: {
    status: 409,
    message: 'This is the only way to sign in to the account. Add another one first.',
  },
  already_subscribed: { status: 409, message: 'The account already has this subscription.' },
  attempt_expired: { status: 410, message: 'The sign-in took longer than 5 minutes. Start it again.' },
  attempt_consumed: { status: 410, message: 'This sign-in is already completed. Start a new one.' },
  merge_expired: { status: 410, message: 'Linking took longer than 10 minutes. Start it again.' },
  idempotency_key_reused: {
    status: 422,
    message: 'This Idempotency-Key was used for a different request. Generate a new one.',
  },
  rate_limited: { status: 429, message: 'Too many requests. Wait for the number of seconds in Retry-After.' },
  internal_error: {
    status: 500,
    message: 'Something went wrong on our side. Include the X-Request-Id header when you report it.',
  },
  not_available: { status: 501, message: 'This is not available yet.' },
  billing_provider_error: {
    status: 502,
    message: 'The billing provider returned an error. Try again in a moment.',
  },
  temporarily_unavailable: { status: 503, message: 'The service is temporarily unavailable. Try again.' },
  capacity_exhausted: { status: 503, message: 'The region is full. Choose another one, or try again later.' },
} as const satisfies Record<string, RefusalText>

export type RefusalCode = keyof typeof refusals

interface RefusalOptions {
  /** Replaces the message of the table; shown to the caller. */
  readonly message?: string | undefined
  /** Response header fields, such as `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An error that becomes the response: its code determines status and message. */
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

/** For a request whose access token was issued by this service, but is no longer valid. */
export const invalidToken = (): Refusal =>
  new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })
