/** All error responses. The code is part of the API contract; clients must not depend on the message. */

/** Status and message of each code. */
export const refusals = {
  invalid_request: [400, 'The request is not valid.'],
  idempotency_key_required: [400, 'Send an Idempotency-Key header with a new UUIDv4 for each start.'],
  idempotency_key_invalid: [400, 'The Idempotency-Key header is not a UUIDv4.'],
  invalid_image: [400, 'This image can not be used. Upload a PNG or JPEG of at most 4 MB and 4096 × 4096 pixels.'],
  token_invalid: [400, 'This link or token is no longer valid.'],
  unauthorized: [401, 'The access token is missing, expired or revoked. Sign in again.'],
  invalid_credentials: [401, 'The email address or password is incorrect.'],
  invalid_refresh_token: [401, 'The refresh token is no longer valid. Sign in again.'],
  invalid_signature: [401, 'The signature does not match.'],
  invalid_relay_auth: [401, 'The X-Relay-Auth header is missing or wrong.'],
  invalid_operator: [401, 'The operator name or password is incorrect.'],
  relay_access_denied: [403, 'Your plan does not include managed relays.'],
  relay_limit_reached: [403, 'All relays of your plan are in use. Stop one, or add one to your plan.'],
  usage_exhausted: [403, 'The included relay time of this cycle is used up.'],
  trial_ended: [403, 'The free test time of this account is used up. Choose a plan to start relays.'],
  trial_network_limit: [
    403,
    'Several free test times have begun in your network within a day. Try again tomorrow, or choose a plan.',
  ],
  attempt_denied: [403, 'The sign-in was denied in the browser.'],
  recent_sign_in_required: [
    403,
    'This account has no password. Sign out, sign in again, and repeat this within 10 minutes.',
  ],
  email_not_verified: [403, 'Verify your email address first.'],
  account_disabled: [403, 'This account is disabled. Contact support.'],
  insufficient_scope: [403, 'This app may not do this. Connect it again with the permission.'],
  forbidden: [403, 'This is not allowed.'],
  not_found: [404, 'Not found.'],
  method_not_allowed: [405, 'This path does not support this method. The Allow header lists supported methods.'],
  payload_too_large: [413, 'The request body is too large.'],
  unsupported_media_type: [415, 'Send JSON, with Content-Type: application/json.'],
  invalid_transition: [409, 'This transition is not possible from the current state of the relay session.'],
  instance_mismatch: [409, 'The relay session is bound to another instance.'],
  relay_replaced: [409, 'Another instance has taken over in this relay session.'],
  connection_limit: [409, 'The account has as many connections as it may have. Delete one that you do not use.'],
  play_key_limit: [409, 'The account has as many play keys as it may have. Delete one that you do not use.'],
  connection_in_use: [409, 'The connection has a live relay. Stop it first.'],
  terms_outdated: [409, 'The terms have changed since. Read and accept the present version.'],
  email_taken: [409, 'An account with this email address already exists.'],
  password_not_set: [
    409,
    'This account has no password. Set one with a password reset link: POST /auth/password/forgot.',
  ],
  provider_already_linked: [409, 'This provider account is already linked to an account.'],
  last_sign_in_method: [409, 'This is the only way to sign in to the account. Add another one first.'],
  not_withdrawable: [409, 'This contract can not be withdrawn from here any more.'],
  already_subscribed: [409, 'The account already has this subscription.'],
  attempt_expired: [410, 'The sign-in took longer than 5 minutes. Start it again.'],
  attempt_consumed: [410, 'This sign-in is already completed. Start a new one.'],
  merge_expired: [410, 'Linking took longer than 10 minutes. Start it again.'],
  idempotency_key_reused: [422, 'This Idempotency-Key was used for a different request. Generate a new one.'],
  rate_limited: [429, 'Too many requests. Wait for the number of seconds in Retry-After.'],
  internal_error: [500, 'Something went wrong on our side. Include the X-Request-Id header when you report it.'],
  not_available: [501, 'This is not available yet.'],
  billing_provider_error: [502, 'The billing provider returned an error. Try again in a moment.'],
  temporarily_unavailable: [503, 'The service is temporarily unavailable. Try again.'],
  trial_region_busy: [
    503,
    'The region keeps its last places for accounts with a plan. Choose another one, try again later, or choose a plan.',
  ],
  capacity_exhausted: [503, 'The region is full. Choose another one, or try again later.'],
} as const satisfies Record<string, readonly [number, string]>

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
    { message = refusals[code][1], headers = {} }: RefusalOptions = {},
  ) {
    super(message)
    this.headers = headers
  }

  get status(): number {
    return refusals[this.code][0]
  }

  get body() {
    return { error: { code: this.code, message: this.message } }
  }

  /** As OAuth has it, for paths whose clients know nothing else. */
  get flatBody() {
    return { error: flatCodes[this.code] ?? this.code, error_description: this.message }
  }
}

const flatCodes: Partial<Record<RefusalCode, string>> = {
  unauthorized: 'invalid_token',
  internal_error: 'server_error',
}

/** For an app whose access token is valid, but not for this. */
export const insufficientScope = (scope?: string): Refusal =>
  new Refusal('insufficient_scope', {
    headers: {
      'WWW-Authenticate': `Bearer error="insufficient_scope"${scope === undefined ? '' : `, scope="${scope}"`}`,
    },
  })

/** For a request whose access token was issued by this service, but is no longer valid. */
export const invalidToken = (): Refusal =>
  new Refusal('unauthorized', { headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' } })
