/** The classes of EC2's failures, and what their messages name. */
import { expect, test } from 'vitest'
import { Ec2Error, ec2ErrorOf } from '../../../providers/relay/aws-errors.ts'
import { RelayProviderError } from '../../../providers/relay/provider.ts'

/** An error as the SDK throws it for a reply of EC2. */
const replyError = (name: string, { message = '', status = 400, headers = {} } = {}) =>
  Object.assign(new Error(message), {
    name,
    $metadata: { httpStatusCode: status, requestId: 'req-1' },
    $response: { headers },
  })

const meaningOf = (name: string, status?: number) => {
  const { failure, detail, retryAfterSeconds } = ec2ErrorOf('RunInstances', replyError(name, status ? { status } : {}))
  return { failure, detail, retryAfterSeconds }
}

test.each(['RequestLimitExceeded', 'Throttling', 'ThrottlingException', 'EC2ThrottledException', 'RequestThrottled'])(
  '%s is repeated after a pause',
  (code) => {
    expect(meaningOf(code, 503)).toEqual({ failure: 'throttled', detail: undefined, retryAfterSeconds: 5 })
  },
)

test('any reply with status 429 is repeated after a pause', () => {
  expect(meaningOf('Whatever', 429)).toMatchObject({ failure: 'throttled', retryAfterSeconds: 5 })
})

test.each([
  ['12', 12],
  ['3600', 60],
  ['0', 5],
  ['Sun, 22 Nov 2026 12:00:00 GMT', 5],
])('the pause of a throttled call with Retry-After %s is %i s', (header, seconds) => {
  const error = ec2ErrorOf('RunInstances', replyError('RequestLimitExceeded', { headers: { 'retry-after': header } }))
  expect(error.retryAfterSeconds).toBe(seconds)
})

test.each([
  'InsufficientInstanceCapacity',
  'InsufficientHostCapacity',
  'InsufficientReservedInstanceCapacity',
  'InsufficientFreeAddressesInSubnet',
  'Unsupported',
])('%s moves on to the next zone', (code) => {
  expect(meaningOf(code, 500)).toMatchObject({ failure: 'try_other_zone', detail: 'capacity' })
})

test.each([
  'InstanceLimitExceeded',
  'VcpuLimitExceeded',
  'MaxSpotInstanceCountExceeded',
  'VolumeLimitExceeded',
  'AddressLimitExceeded',
  'QuotaExceeded',
  'ServiceQuotaExceededException',
])('%s is a quota of the account', (code) => {
  expect(meaningOf(code)).toMatchObject({ failure: 'give_up', detail: 'quota' })
})

test.each([
  'AuthFailure',
  'UnauthorizedOperation',
  'InvalidClientTokenId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'CredentialsProviderError',
  'OptInRequired',
  'InvalidAMIID.NotFound',
  'InvalidAMIID.Malformed',
  'InvalidSubnetID.NotFound',
  'InvalidGroup.NotFound',
  'InvalidSecurityGroupID.NotFound',
  'InvalidParameter',
  'InvalidParameterValue',
  'InvalidParameterCombination',
])('%s is a fault of the configuration', (code) => {
  expect(meaningOf(code)).toMatchObject({ failure: 'give_up', detail: 'configuration' })
})

test.each(['InternalError', 'Unavailable', 'ServiceUnavailable', 'InvalidInstanceID.NotFound', 'SomethingNew'])(
  '%s may succeed later',
  (code) => {
    expect(meaningOf(code, 500)).toEqual({ failure: 'retry', detail: undefined, retryAfterSeconds: undefined })
  },
)

test('the client token of a terminated instance is never tried again', () => {
  expect(meaningOf('IdempotentInstanceTerminated')).toMatchObject({ failure: 'give_up', detail: undefined })
})

test.each([
  [Object.assign(new Error('too slow'), { name: 'TimeoutError', code: 'ETIMEDOUT' }), 'TimeoutError'],
  [Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), 'ECONNREFUSED'],
  [new Error('anything'), 'Error'],
  ['text', 'an unknown error'],
  [undefined, 'an unknown error'],
])('a call without a reply may succeed later: %s', (error, code) => {
  const found = ec2ErrorOf('DescribeInstances', error)
  expect(found).toMatchObject({ failure: 'retry', code, message: `EC2 DescribeInstances failed with ${code}` })
})

test('the message names operation, code, request and the setting to check, and quotes EC2', () => {
  const message = "The image id '[ami-0123456789abcdef0]' does not exist"
  const error = ec2ErrorOf('RunInstances', replyError('InvalidAMIID.NotFound', { message }))
  expect(error).toBeInstanceOf(Ec2Error)
  expect(error).toBeInstanceOf(RelayProviderError)
  expect(error.message).toBe(
    `EC2 RunInstances failed with InvalidAMIID.NotFound (HTTP 400, request req-1): check aws.image_id in SVC_REGIONS: ${message}`,
  )
})

test('the message of a missing permission names the action without its encoded part', () => {
  const message =
    'User: arn:aws:iam::1:user/relays is not authorized to perform: ec2:RunInstances. Encoded authorization failure message: Xk4sDf'
  const error = ec2ErrorOf('RunInstances', replyError('UnauthorizedOperation', { message, status: 403 }))
  expect(error.message).toMatch(/lack a permission.*not authorized to perform: ec2:RunInstances\.$/)
})

test.each([
  ['SignatureDoesNotMatch', 'The canonical string was: AKIASECRETKEY'],
  ['AuthFailure', 'AWS was not able to validate AKIASECRETKEY'],
  ['InvalidParameterValue', 'The user data AKIASECRETKEY is not base64'],
  ['InvalidUserData.Malformed', 'AKIASECRETKEY'],
])('the message of %s repeats no part of the request, and has no cause', (code, message) => {
  const error = ec2ErrorOf('RunInstances', replyError(code, { message }))
  expect(error.message).not.toContain('AKIASECRETKEY')
  expect(error.cause).toBeUndefined()
})

test('a long explanation is cut', () => {
  const error = ec2ErrorOf('RunInstances', replyError('InternalError', { message: 'x'.repeat(5_000) }))
  expect(error.message.length).toBeLessThan(500)
})
