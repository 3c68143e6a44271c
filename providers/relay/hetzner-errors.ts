/** What an error of the Hetzner Cloud API means for the caller of a relay provider. */
import type { ProvisioningDetail } from '../../domain/relay/session.ts'
import { type ProviderErrorOptions, type ProviderFailure, RelayProviderError } from './provider.ts'

/**
 * An error reply of the API, with its machine-readable code. `code` is empty when the reply has none, as from a proxy.
 */
export class HetznerApiError extends RelayProviderError {
  override name = 'HetznerApiError'
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    failure: ProviderFailure,
    options?: ProviderErrorOptions,
  ) {
    super(message, failure, options)
  }
}

export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof HetznerApiError && error.code === code

/** An error that only a changed setting ends. */
export const configurationError = (message: string): RelayProviderError =>
  new RelayProviderError(message, 'give_up', { detail: 'configuration' })

export interface Meaning {
  readonly failure: ProviderFailure
  readonly detail?: ProvisioningDetail
  /** What an operator can do about it. */
  readonly hint?: string
}

const capacity: Meaning = { failure: 'try_other_zone', detail: 'capacity' }
const quota: Meaning = {
  failure: 'give_up',
  detail: 'quota',
  hint: 'request a higher limit of servers or addresses in the Hetzner Console',
}
const retry: Meaning = { failure: 'retry' }
const configuration: Meaning = { failure: 'give_up', detail: 'configuration' }
const wrongToken: Meaning = { ...configuration, hint: 'check SVC_HETZNER_TOKEN' }
const weakToken: Meaning = { ...configuration, hint: 'SVC_HETZNER_TOKEN needs the permission "Read & Write"' }

const meanings: Readonly<Record<string, Meaning>> = {
  rate_limit_exceeded: { failure: 'throttled' },
  resource_unavailable: capacity,
  placement_error: capacity,
  resource_limit_exceeded: quota,
  limit_reached: quota,
  unauthorized: wrongToken,
  forbidden: weakToken,
  token_readonly: weakToken,
  protected: { ...configuration, hint: 'remove its protection in the Hetzner Console' },
  invalid_input: configuration,
  invalid_server_type: configuration,
  json_error: configuration,
  method_not_allowed: configuration,
  not_found: configuration,
  unsupported_error: configuration,
  deprecated_api_endpoint: configuration,
  locked: retry,
  conflict: retry,
  uniqueness_error: retry,
  maintenance: retry,
  service_error: retry,
  unavailable: retry,
  bad_gateway: retry,
  timeout: retry,
  robot_unavailable: retry,
}

/**
 * Codes that say nothing about the cause, such as `server_error` and `action_failed`, may come with a text that does.
 */
const capacityText =
  /\bcapacity\b|\bplacement\b|\bresources? (are |is )?(currently )?unavailable\b|\bnot available for order\b/i

/** @param status the HTTP status; undefined for the error of an action. */
export function meaningOf(code: string, text: string, status?: number): Meaning {
  // Before the code, since old versions of the API used other codes for it.
  if (status === 429) return { failure: 'throttled' }
  const meaning = Object.hasOwn(meanings, code) ? meanings[code] : undefined
  if (meaning) return meaning
  if (code !== '' && capacityText.test(text)) return capacity
  if (status === 401) return wrongToken
  if (status === 403) return weakToken
  return retry
}
