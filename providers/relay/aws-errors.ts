/** What the failures of EC2's calls mean for a relay. */
import { type ProviderErrorOptions, type ProviderFailure, RelayProviderError } from './provider.ts'

/** A failed call of EC2, with the error code of EC2 or of the network. */
export class Ec2Error extends RelayProviderError {
  constructor(
    readonly code: string,
    message: string,
    { failure, ...options }: ProviderErrorOptions & { failure: ProviderFailure },
  ) {
    super(message, failure, options)
  }
}

/** The properties of errors of the SDK and of Node that are used here. */
interface SdkError {
  readonly name?: unknown
  readonly code?: unknown
  readonly message?: unknown
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string }
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> }
}

type Meaning = Pick<Ec2Error, 'failure'> & Pick<ProviderErrorOptions, 'detail'>

const throttled: Meaning = { failure: 'throttled' }
const noCapacity: Meaning = { failure: 'try_other_zone', detail: 'capacity' }
const overQuota: Meaning = { failure: 'give_up', detail: 'quota' }
const misconfigured: Meaning = { failure: 'give_up', detail: 'configuration' }

const credentialCodes =
  /^(AuthFailure|InvalidClientTokenId|UnrecognizedClient(Exception)?|SignatureDoesNotMatch|IncompleteSignature|(Missing|Invalid)AuthenticationToken|InvalidAccessKeyId|ExpiredToken(Exception)?|CredentialsProviderError|TokenProviderError)$/
const permissionCodes = /^(UnauthorizedOperation|AccessDenied(Exception)?)$/

/** The first match counts, so `RequestLimitExceeded` is no quota. Any other code may succeed later. */
const meanings: readonly (readonly [RegExp, Meaning])[] = [
  [/^(RequestLimitExceeded|RequestThrottled|Throttl|EC2Throttled|TooManyRequests|SlowDown$)/, throttled],
  [/^Insufficient\w*Capacity$|^InsufficientFreeAddressesInSubnet$/, noCapacity],
  // Mostly an instance type that the zone does not offer.
  [/^Unsupported(HostConfiguration)?$/, noCapacity],
  [/LimitExceeded$|^MaxSpotInstanceCountExceeded$|Quota/, overQuota],
  [credentialCodes, misconfigured],
  [permissionCodes, misconfigured],
  // Blocked and PendingVerification concern the account.
  [
    /^(OptInRequired|Blocked|PendingVerification|UnsupportedOperation|MissingParameter|UnknownParameter)$/,
    misconfigured,
  ],
  [/^Invalid(AMI|Subnet|Group|SecurityGroup|Parameter|InstanceType|UserData|NetworkInterface)/, misconfigured],
  // The id of the instance cannot be used again.
  [/^IdempotentInstanceTerminated$/, { failure: 'give_up' }],
]

export const meaningOf = (code: string): Meaning =>
  meanings.find(([codes]) => codes.test(code))?.[1] ?? { failure: 'retry' }

/** Which setting to check, by error code. */
const remedies: readonly (readonly [RegExp, string])[] = [
  [/^CredentialsProviderError$/, 'no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
  [credentialCodes, 'check the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
  [permissionCodes, 'the credentials lack a permission of the policy in docs/relays.md'],
  [/^InvalidAMI/, 'check aws.image_id in SVC_REGIONS'],
  [/^InvalidSubnet/, 'check aws.subnet_ids in SVC_REGIONS'],
  [/^Invalid(Security)?Group/, 'check aws.security_group_ids in SVC_REGIONS'],
  [/^(Unsupported|InvalidInstanceType)$/, 'check whether the zone offers aws.instance_type'],
  [/^OptInRequired$/, 'enable the region for the account, and accept the terms of the image'],
]

const throttlePauseSeconds = 5
const throttlePauseSecondsMax = 60
const messageLengthMax = 300

/** @param operation the name of the API action, such as `RunInstances`. */
export function ec2ErrorOf(operation: string, error: unknown): Ec2Error {
  const { $metadata: { httpStatusCode, requestId } = {}, $response } = (error ?? {}) as SdkError
  const code = codeOf((error ?? {}) as SdkError)
  const meaning = httpStatusCode === 429 ? throttled : meaningOf(code)
  const facts = [httpStatusCode && `HTTP ${httpStatusCode}`, requestId && `request ${requestId}`].filter(Boolean)
  const remedy = remedies.find(([codes]) => codes.test(code))?.[1]
  const explanation = explanationOf(code, (error ?? {}) as SdkError)
  const text = [
    `EC2 ${operation} failed with ${code}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`,
    ...(remedy ? [remedy] : []),
    ...(explanation ? [explanation] : []),
  ].join(': ')
  return new Ec2Error(code, text, {
    ...meaning,
    ...(meaning.failure === 'throttled' ? { retryAfterSeconds: pauseOf($response?.headers) } : {}),
  })
}

/** The SDK names its errors by EC2's code. Node has the code of a failed connection in `code`. */
function codeOf({ name, code }: SdkError): string {
  const found = (name === undefined || name === 'Error' || name === 'AggregateError') && code ? code : name
  return typeof found === 'string' && /^[\w.:-]{1,100}$/.test(found) ? found : 'an unknown error'
}

/**
 * EC2's own explanation, which names the id or the action. The error itself is not kept as the cause: causes become
 * part of workflow histories, and messages about signatures and user data repeat parts of the request.
 */
function explanationOf(code: string, { message, $metadata }: SdkError): string | undefined {
  if (typeof message !== 'string' || $metadata?.httpStatusCode === undefined) return undefined
  if (credentialCodes.test(code) || /user ?data/i.test(`${code} ${message}`)) return undefined
  const [readable = ''] = message.split(/\s*Encoded authorization failure message/)
  return readable.replace(/\s+/g, ' ').slice(0, messageLengthMax)
}

function pauseOf(headers: Readonly<Record<string, string>> = {}): number {
  const seconds = Number(headers['retry-after'])
  return seconds > 0 ? Math.min(seconds, throttlePauseSecondsMax) : throttlePauseSeconds
}
