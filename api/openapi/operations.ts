/** One operation of the OpenAPI document, from its route. */
import { type RateLimitName, rateLimitDefaults } from '../../platform/config/values.ts'
import type { Route } from '../routes/route.ts'
import { describeErrors, describeJson, describeSuccesses, listErrorCodes } from './replies.ts'
import type { JsonSchema, SchemaConverter } from './schemas.ts'
import { describeSecurity } from './security.ts'
import { tagOf } from './tags.ts'

export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly tags: readonly string[]
  readonly deprecated?: true
  readonly security?: readonly object[]
  readonly parameters: readonly object[]
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, { readonly description: string } | { readonly $ref: string }>>
}

export function describeOperation(route: Route, converter: SchemaConverter): Operation {
  const requestBody = describeBody(route, converter)
  return {
    operationId: route.id,
    summary: route.summary,
    description: [route.description, ...describeLimit(route), ...describeDeprecation(route)].join('\n\n'),
    tags: [tagOf(route.path)],
    ...(route.deprecated ? { deprecated: true } : {}),
    security: describeSecurity(route),
    parameters: [
      ...describeParameters('path', route.params, converter),
      ...describeParameters('query', route.query, converter),
      ...Object.entries(route.requestHeaders ?? {}).map(([name, text]) =>
        describeHeader(name, { required: true, ...text }),
      ),
      ...Object.entries(route.optionalHeaders ?? {}).map(([name, description]) =>
        describeHeader(name, { required: false, description }),
      ),
    ],
    ...(requestBody ? { requestBody } : {}),
    responses: { ...describeSuccesses(route, converter), ...describeErrors(listErrorCodes(route), route.errors) },
  }
}

const limitSubjects: Readonly<Record<string, string>> = {
  user: 'account',
  user_or_app: 'account',
  app: 'account',
  relay_watcher: 'account',
}

function describeLimit({ limit, caller }: Route): string[] {
  if (!limit) return []
  const name: RateLimitName = limit
  const subject = limitSubjects[caller] ?? 'network of the client'
  return [
    `**Limit:** ${rateLimitDefaults[name]} requests a minute for each ${subject} (\`${name}\`), unless the service is configured otherwise.`,
  ]
}

const describeDeprecation = ({ deprecated }: Route): string[] =>
  deprecated ? [`**Deprecated** since ${deprecated.since}. It may be left out from ${deprecated.sunset} on.`] : []

function describeBody(route: Route, converter: SchemaConverter): object | undefined {
  if (route.bytesMax !== undefined) {
    const description = `The raw body, at most ${route.bytesMax / 1024} KiB.`
    if (route.rawBody) {
      const schema = { type: 'string', format: 'binary', description }
      return {
        required: true,
        content: Object.fromEntries(route.rawBody.contentTypes.map((type) => [type, { schema }])),
      }
    }
    const schema = { type: 'object', description }
    return { required: true, content: describeJson(schema, route.examples?.requests) }
  }
  if (!route.body) return undefined
  return {
    // Operator routes require a JSON content type, so clients always send a body.
    required: route.caller === 'operator' || !route.body.safeParse({}).success,
    content: describeJson(converter.convert(route.body, 'input'), route.examples?.requests),
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
  region: 'The name of a region.',
  state: 'Only sessions in this state.',
  status: 'Only entries with this status.',
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

const describeHeader = (name: string, text: { readonly required: boolean; readonly description: string }): object => ({
  name,
  in: 'header',
  ...text,
  schema: { type: 'string' },
})
