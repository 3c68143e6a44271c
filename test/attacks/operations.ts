/** The operations of docs/openapi.json with a request for each, so that a new route is attacked without a new test. */
import { readFileSync } from 'node:fs'
import pLimit from 'p-limit'

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

export interface Schema {
  readonly type?: string
  readonly format?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly const?: string
  readonly enum?: readonly string[]
  readonly minimum?: number
}

interface Parameter {
  readonly name: string
  readonly in: 'path' | 'query' | 'header'
  readonly required?: boolean
  readonly schema: Schema
}

interface OperationObject {
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly content: Readonly<
      Record<
        string,
        { readonly schema: Schema; readonly examples?: Readonly<Record<string, { readonly value: Json }>> }
      >
    >
  }
}

export interface Operation {
  readonly method: string
  /** With parameters as `{name}`. */
  readonly template: string
  /** The names of the security schemes, any of which is sufficient; empty for a public operation. */
  readonly schemes: readonly string[]
  readonly isPublic: boolean
  /** What the token of an app needs; empty when the operation takes none. */
  readonly scopes: readonly string[]
  readonly parameters: readonly Parameter[]
  readonly bodySchema: Schema | undefined
  /** A body that the operation accepts. */
  readonly body: Json | undefined
}

/** Texts that operations accept, by format or by the name of the field. */
const sampleTexts: Readonly<Record<string, string>> = {
  uuid: '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90',
  'date-time': '2026-12-31T23:59:59.000Z',
  email: 'streamer@example.com',
  password: 'correct horse battery staple',
  new_password: 'another long passphrase',
  url: 'https://example.com/hooks/relay',
  subscription_id: 'sub_1042',
}

/** A value that a schema accepts, so that a hostile one in another field gets past the validation. */
function sampleOf(schema: Schema, name = ''): Json {
  const { type, anyOf, properties, items, minimum } = schema
  if (anyOf?.[0]) return sampleOf(anyOf[0], name)
  if (type === 'object')
    return Object.fromEntries(Object.entries(properties ?? {}).map(([key, property]) => [key, sampleOf(property, key)]))
  if (type === 'array') return items ? [sampleOf(items, name)] : []
  if (type === 'boolean') return true
  if (type === 'integer' || type === 'number') return minimum ?? 1
  return schema.const ?? schema.enum?.[0] ?? sampleTexts[schema.format ?? name] ?? 'sample'
}

const { paths } = JSON.parse(readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
}

export const operations: readonly Operation[] = Object.entries(paths).flatMap(([template, methods]) =>
  Object.entries(methods).map(([method, { security = [], parameters = [], requestBody }]) => {
    const content = requestBody?.content['application/json']
    return {
      method: method.toUpperCase(),
      template,
      schemes: security.flatMap((requirement) => Object.keys(requirement)),
      scopes: security.flatMap(({ appToken = [] }) => appToken as readonly string[]),
      isPublic: security.length === 0 || security.some((requirement) => Object.keys(requirement).length === 0),
      parameters,
      bodySchema: content?.schema,
      body: content && (Object.values(content.examples ?? {})[0]?.value ?? sampleOf(content.schema)),
    }
  }),
)

/** `GET /api/v1/relay/active`, for the names of failures. */
export const nameOf = ({ method, template }: Operation): string => `${method} ${template}`

/** The path with these values, or else with ones that the operation accepts, and with its required query parameters. */
export function pathOf({ template, parameters }: Operation, values: Readonly<Record<string, string>> = {}): string {
  const of = (place: Parameter['in']) => parameters.filter((parameter) => parameter.in === place)
  const path = of('path').reduce(
    (text, { name, schema }) =>
      text.replace(`{${name}}`, values[name] ?? encodeURIComponent(String(sampleOf(schema, name)))),
    template,
  )
  const query = new URLSearchParams(
    of('query')
      .filter(({ name, required }) => required || name in values)
      .map(({ name, schema }) => [name, values[name] ?? String(sampleOf(schema, name))]),
  ).toString()
  return query === '' ? path : `${path}?${query}`
}

export interface Sending {
  readonly values?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Json | undefined
  /** Sent as it is, in place of `body`. */
  readonly bytes?: string | Uint8Array<ArrayBuffer>
}

export interface Received {
  readonly status: number
  readonly code: string | undefined
  readonly text: string
  readonly headers: Headers
}

/** Sends the operation's request. WebSocket handshakes are sent as plain requests. */
export async function sendOperation(
  url: string,
  operation: Operation,
  { values = {}, headers = {}, body = operation.body, bytes }: Sending = {},
): Promise<Received> {
  const sent = bytes ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url + pathOf(operation, values), {
    method: operation.method,
    headers: {
      ...(['POST', 'PATCH'].includes(operation.method) ? { 'Content-Type': 'application/json' } : {}),
      ...requiredHeaders(operation),
      ...headers,
    },
    redirect: 'manual',
    ...(sent === undefined ? {} : { body: sent }),
  })
  const text = await response.text()
  return { status: response.status, code: codeOf(text), text, headers: response.headers }
}

const requiredHeaders = ({ parameters }: Operation): Record<string, string> =>
  Object.fromEntries(
    parameters
      .filter(({ name }) => name === 'Idempotency-Key')
      .map(({ name }): [string, string] => [name, crypto.randomUUID()]),
  )

function codeOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code
  } catch {
    return undefined
  }
}

/** Runs them 16 at a time. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const limit = pLimit(16)
  return Promise.all(items.map((item) => limit(() => run(item))))
}
