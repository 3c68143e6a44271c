/** One operation of the OpenAPI document, from the declaration of its route and the text of the reference. */
import { type RateLimitName, rateLimitDefaults } from '../../platform/config/values.ts'
import type { Route } from '../http/route.ts'
import type { OperationText } from './operation-text.ts'
import { describeErrors, describeJson, describeSuccesses, listErrorCodes } from './replies.ts'
import type { JsonSchema, SchemaConverter } from './schemas.ts'
import { securityByCaller } from './security.ts'
import { tagOf } from './tags.ts'

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly security?: readonly object[]
  readonly parameters: readonly object[]
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, { readonly description: string } | { readonly $ref: string }>>
}

export function describeOperation(
  route: Route,
  text: OperationText | undefined,
  converter: SchemaConverter,
): Operation {
  const description = [text?.description, describeLimit(route)].filter((part) => part !== undefined).join('\n\n')
  const requestBody = describeBody(route, text, converter)
  return {
    operationId: text?.id ?? deriveOperationId(route),
    summary: route.summary,
    ...(description === '' ? {} : { description }),
    tags: [tagOf(route.path)],
    security: securityByCaller[route.caller],
    parameters: [
      ...describeParameters('path', route.params, converter),
      ...describeParameters('query', route.query, converter),
      ...describeHeaders(route.requestHeaders, true),
      ...describeHeaders(text?.headers, false),
    ],
    ...(requestBody ? { requestBody } : {}),
    responses: { ...describeSuccesses(route, text, converter), ...describeErrors(listErrorCodes(route)) },
  }
}

/** `GET /auth/oauth/{provider}/start` becomes `getAuthOauthByProviderStart`: an id for a route without a text. */
function deriveOperationId({ method, path }: Route): string {
  const words = path.replaceAll(/\{(\w+)\}/g, 'by-$1').split(/[^A-Za-z0-9]+/)
  return method.toLowerCase() + words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('')
}

const limitSubjects: Readonly<Record<string, string>> = { user: 'account', relay_watcher: 'account' }

function describeLimit({ limit, caller }: Route): string | undefined {
  if (!limit) return undefined
  const name: RateLimitName = limit
  const subject = limitSubjects[caller] ?? 'network of the client'
  return `**Limit:** ${rateLimitDefaults[name]} requests a minute for each ${subject} (\`${name}\`), unless the service is configured otherwise.`
}

function describeBody(route: Route, text: OperationText | undefined, converter: SchemaConverter): object | undefined {
  if (route.bytesMax !== undefined) {
    const schema = { type: 'object', description: `The raw body, at most ${route.bytesMax / 1024} KiB.` }
    return { required: true, content: describeJson(schema, text?.requests) }
  }
  if (!route.body) return undefined
  return {
    // Operator routes require a JSON content type, so clients always send a body.
    required: route.caller === 'operator' || !route.body.safeParse({}).success,
    content: describeJson(converter.convert(route.body, 'input'), text?.requests),
  }
}

/** Descriptions of parameters whose schemas have none. */
const parameterTexts: Readonly<Record<string, string>> = {
  id: 'The id of the resource.',
  connection_id: 'The name that the client has chosen for a connection.',
  subscription_id: 'The id of the subscription at the billing provider.',
  merge_request_id: 'The id of the merge request.',
  user_id: 'Only entries of this account.',
  provider: 'The provider of the linked account.',
  outcome: 'What happens to the subscription.',
  email: 'The email address of the account.',
  region: 'The name of a region.',
  state: 'Only sessions in this state.',
  status: 'Only entries with this status.',
  gone: 'Whether the instance no longer exists.',
  billed: 'What the accounts are billed for.',
  cursor: 'The `next_cursor` of the previous page.',
  view: '`dock` leaves out everything secret, for a view that may be visible on stream.',
}

function describeParameters(location: 'path' | 'query', schema: Route['params'], converter: SchemaConverter): object[] {
  if (!schema) return []
  const { properties = {}, required = [] } = converter.convert(schema, 'input') as {
    properties?: Record<string, JsonSchema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: location,
    required: required.includes(name),
    description: property.description ?? parameterTexts[name] ?? `The ${name.replaceAll('_', ' ')}.`,
    schema: property,
  }))
}

const headerExamples: Readonly<Record<string, string>> = {
  'Idempotency-Key': '9b2f6c1e-4d8a-4f3b-a7e5-0c1d2e3f4a5b',
  'X-Pair-Token': 'pair_example_3sKd7fGh',
  'Sec-WebSocket-Protocol': 'svc.relay.v1, ws_example_8jLm2nBv',
}

const describeHeaders = (texts: Readonly<Record<string, string>> = {}, required: boolean): object[] =>
  Object.entries(texts).map(([name, description]) => ({
    name,
    in: 'header',
    required,
    description,
    schema: { type: 'string' },
    ...(headerExamples[name] ? { example: headerExamples[name] } : {}),
  }))
