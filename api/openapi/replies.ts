/** The replies of an operation: successes from its schemas, errors from the table of refusals. */
import type { Example, Examples } from '../http/operation-text.ts'
import { Refusal, type RefusalCode, refusals } from '../http/refusals.ts'
import type { Route } from '../routes/route.ts'
import type { JsonSchema, SchemaConverter } from './schemas.ts'

const referToHeaders = (...names: (keyof typeof headers)[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

/** The response headers that are documented, as components. */
export const headers = {
  'X-Request-Id': {
    description: 'The id of the request in the log of the service. Name it when you report a problem.',
    schema: { type: 'string', format: 'uuid' },
  },
  'Retry-After': {
    description: 'After how many seconds a request may succeed.',
    schema: { type: 'integer', minimum: 0 },
    example: 12,
  },
  RateLimit: {
    description: 'The name of the limit, the requests that remain (`r`), and the seconds until it resets (`t`).',
    schema: { type: 'string' },
    example: '"relay_start";r=5;t=42',
  },
  'RateLimit-Policy': {
    description: 'The name of the limit, its requests (`q`), and its window in seconds (`w`).',
    schema: { type: 'string' },
    example: '"relay_start";q=6;w=60',
  },
  'Idempotent-Replayed': {
    description: '`true` when an `Idempotency-Key` was sent before, and nothing was started. Otherwise absent.',
    schema: { type: 'string', const: 'true' },
  },
  ETag: {
    description: 'Changes with the body. Sent back in `If-None-Match`, it avoids an unchanged body.',
    schema: { type: 'string' },
    example: '"mZ3c1J1yQy0"',
  },
  Deprecation: {
    description: 'Since when the operation is deprecated, as `@` and the seconds since 1970 (RFC 9745).',
    schema: { type: 'string' },
    example: '@1801353600',
  },
  Sunset: {
    description: 'When a deprecated operation may be left out, at least a year later (RFC 8594).',
    schema: { type: 'string' },
    example: 'Mon, 31 Jan 2028 00:00:00 GMT',
  },
  'WWW-Authenticate': {
    description: 'The authentication scheme that is expected.',
    schema: { type: 'string' },
    example: 'Bearer error="invalid_token"',
  },
} as const

const successTexts: Readonly<Record<string, string>> = {
  '101': 'The connection is a WebSocket now',
  '200': 'Success',
  '201': 'Created',
  '202': 'Accepted',
  '204': 'Success, without a body',
  '304': 'Not changed since the reply whose `ETag` was sent',
}

export function describeSuccesses(route: Route, converter: SchemaConverter) {
  return Object.fromEntries(
    Object.entries(route.answers).map(([status, answer]) => {
      return [
        status,
        {
          description: successTexts[status] ?? 'Success',
          headers: referToHeaders(
            'X-Request-Id',
            ...(route.limit ? (['RateLimit', 'RateLimit-Policy'] as const) : []),
            ...(route.deprecated ? (['Deprecation', 'Sunset'] as const) : []),
            ...(route.replyHeaders?.[Number(status)] ?? []),
          ),
          ...(answer ? { content: describeContent(answer, converter, route.examples?.replies?.[Number(status)]) } : {}),
        },
      ]
    }),
  )
}

const describeContent = (
  answer: NonNullable<Route['answers'][number]>,
  converter: SchemaConverter,
  examples: Examples | undefined,
) =>
  typeof answer === 'string'
    ? { [answer]: { schema: { type: 'string' }, ...(examples ? { examples } : {}) } }
    : describeJson(converter.convert(answer), examples)

/** The content of a request or a reply. */
export const describeJson = (schema: JsonSchema, examples: Examples | undefined) => ({
  'application/json': { schema, ...(examples ? { examples } : {}) },
})

/** The error codes that a route replies with: its own, and those of every route of its kind. */
export function listErrorCodes(route: Route): RefusalCode[] {
  const codes = new Set<RefusalCode>([...route.refuses, 'internal_error', 'temporarily_unavailable'])
  if (route.body || route.query) codes.add('invalid_request')
  if (route.body) codes.add('payload_too_large').add('unsupported_media_type')
  if (route.bytesMax !== undefined)
    codes.add('invalid_request').add(route.rawBody?.tooLarge.code ?? 'payload_too_large')
  if (userCallers.has(route.caller)) codes.add('unauthorized').add('insufficient_scope')
  if (route.caller === 'relay_watcher') codes.add('forbidden')
  if (route.caller === 'operator') codes.add('invalid_operator').add('not_found').add('rate_limited')
  if (route.caller === 'operator' && route.method !== 'GET') codes.add('forbidden').add('unsupported_media_type')
  if (route.limit) codes.add('rate_limited')
  return [...codes].sort()
}

const userCallers = new Set<Route['caller']>(['user', 'maybe_user', 'user_or_app', 'app', 'relay_watcher'])

const codesByStatus = (codes: readonly RefusalCode[]): Map<number, RefusalCode[]> => {
  const statuses = new Map<number, RefusalCode[]>()
  for (const code of codes) {
    const [status] = refusals[code]
    statuses.set(status, [...(statuses.get(status) ?? []), code])
  }
  return statuses
}

/** Operations with the same error codes share the description of the reply. */
const errorReplyName = (codes: readonly RefusalCode[], form: Route['errors']): string =>
  [...codes, ...(form ? [form] : [])].join('.')

export const describeErrors = (
  codes: readonly RefusalCode[],
  form: Route['errors'],
): Record<string, { readonly $ref: string }> =>
  Object.fromEntries(
    [...codesByStatus(codes)].map(([status, list]) => [
      status,
      { $ref: `#/components/responses/${errorReplyName(list, form)}` },
    ]),
  )

/** The components that {@link describeErrors} refers to, for the error codes of all routes. */
export const describeErrorReplies = (routes: readonly Route[]): Record<string, object> =>
  Object.fromEntries(
    routes
      .flatMap((route) => [...codesByStatus(listErrorCodes(route))].map((entry) => [...entry, route.errors] as const))
      .map(([status, codes, form]) => [errorReplyName(codes, form), describeErrorReply(status, codes, form)] as const)
      .toSorted(([a], [b]) => a.localeCompare(b, 'en')),
  )

const describeErrorReply = (status: number, codes: readonly RefusalCode[], form: Route['errors']) => ({
  description: codes.join(', '),
  headers: referToHeaders('X-Request-Id', ...headersOfError(status)),
  content: {
    'application/json': {
      schema: { $ref: `#/components/schemas/${form === 'flat' ? 'FlatError' : 'Error'}` },
      examples: Object.fromEntries(
        codes.map((code) => [
          code,
          form === 'flat'
            ? { summary: code, value: new Refusal(code).flatBody }
            : { $ref: `#/components/examples/${code}` },
        ]),
      ),
    },
  },
})

function headersOfError(status: number): (keyof typeof headers)[] {
  if (status === 401) return ['WWW-Authenticate']
  if (status === 429) return ['Retry-After', 'RateLimit', 'RateLimit-Policy']
  return status === 503 ? ['Retry-After'] : []
}

/** One example for each error code. */
export const errorExamples: Readonly<Record<string, Example>> = Object.fromEntries(
  Object.entries(refusals).map(([code, [, message]]) => [code, { summary: code, value: { error: { code, message } } }]),
)
