/** The OpenAPI 3.1 document, generated from the route declarations. */
import { z } from 'zod'
import { basePath } from './app.ts'
import { type RefusalCode, refusals } from './refusals.ts'
import type { CallerKind, Route } from './route.ts'

const securityByCaller: Record<CallerKind, object[] | undefined> = {
  none: undefined,
  user: [{ accessToken: [] }],
  maybe_user: [{}, { accessToken: [] }],
  operator: [{ operator: [] }, { operatorSession: [] }],
  relay: [{ relayAuth: [] }],
  relay_watcher: [{ relayWsToken: [] }, { accessToken: [] }],
}

export interface OpenapiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: object
}

export interface Operation {
  readonly summary: string
  readonly tags: readonly string[]
  readonly parameters: readonly object[]
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, { readonly description: string }>>
}

/** @param apiUrl the base URL of the described server. */
export function openapiDocument(routes: readonly Route[], apiUrl: string): OpenapiDocument {
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = basePath + route.path
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Relay control plane',
      version: '1',
      description: 'Accounts, relay lifecycle, billing and operators. Errors are `{"error":{"code","message"}}`.',
    },
    servers: [{ url: apiUrl }],
    paths,
    components: {
      securitySchemes: {
        accessToken: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        operator: { type: 'http', scheme: 'basic' },
        operatorSession: { type: 'http', scheme: 'bearer' },
        relayAuth: { type: 'apiKey', in: 'header', name: 'X-Relay-Auth' },
        relayWsToken: { type: 'apiKey', in: 'header', name: 'Sec-WebSocket-Protocol' },
      },
      schemas: {
        Error: jsonSchema(
          z.object({ error: z.object({ code: z.enum(Object.keys(refusals) as [RefusalCode]), message: z.string() }) }),
        ),
      },
    },
  }
}

function describeOperation(route: Route): Operation {
  const security = securityByCaller[route.caller]
  return {
    summary: route.summary,
    tags: [route.path.split('/')[1] ?? ''],
    ...(security ? { security } : {}),
    parameters: [
      ...describeParameters('path', route.params),
      ...describeParameters('query', route.query),
      ...Object.entries(route.requestHeaders ?? {}).map(([name, description]) => ({
        name,
        in: 'header',
        required: true,
        description,
        schema: { type: 'string' },
      })),
    ],
    ...(route.body
      ? {
          requestBody: {
            // Operator routes require a JSON content type, so clients always send a body.
            required: route.caller === 'operator' || !route.body.safeParse({}).success,
            content: { 'application/json': { schema: jsonSchema(route.body, 'input') } },
          },
        }
      : {}),
    ...(route.bytesMax === undefined
      ? {}
      : { requestBody: { required: true, content: { '*/*': { schema: { type: 'string', format: 'binary' } } } } }),
    responses: { ...describeSuccesses(route), ...describeErrors(route) },
  }
}

function describeParameters(location: 'path' | 'query', schema: z.ZodType | undefined): object[] {
  if (!schema) return []
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, object>
    required?: string[]
  }
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: location,
    required: required.includes(name),
    schema: property,
  }))
}

const describeSuccesses = (route: Route) =>
  Object.fromEntries(
    Object.entries(route.answers).map(([status, schema]) => [
      status,
      {
        description: status === '101' ? 'The connection is a WebSocket now.' : 'Success',
        ...(schema ? { content: { 'application/json': { schema: jsonSchema(schema) } } } : {}),
      },
    ]),
  )

function describeErrors(route: Route) {
  const codes = new Set<RefusalCode>([...route.refuses, 'internal_error', 'temporarily_unavailable'])
  if (route.body || route.query) codes.add('invalid_request')
  if (route.body) codes.add('payload_too_large').add('unsupported_media_type')
  if (route.bytesMax !== undefined) codes.add('invalid_request').add('payload_too_large')
  if (route.caller === 'user' || route.caller === 'maybe_user') codes.add('unauthorized')
  if (route.caller === 'relay_watcher') codes.add('unauthorized').add('forbidden')
  if (route.caller === 'operator') codes.add('invalid_operator').add('not_found').add('rate_limited')
  if (route.caller === 'operator' && route.method !== 'GET') codes.add('forbidden').add('unsupported_media_type')
  if (route.limit) codes.add('rate_limited')
  const byStatus = new Map<number, RefusalCode[]>()
  for (const code of [...codes].sort())
    byStatus.set(refusals[code].status, [...(byStatus.get(refusals[code].status) ?? []), code])
  return Object.fromEntries(
    [...byStatus].map(([status, list]) => [
      status,
      {
        description: list.join(', '),
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ]),
  )
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'output'): object {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}
