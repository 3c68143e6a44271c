/** The OpenAPI 3.1 document, generated from the routes. */
import { z } from 'zod'
import { basePath } from '../http/app.ts'
import { type RefusalCode, refusals } from '../http/refusals.ts'
import type { Route } from '../routes/route.ts'
import { describeOperation, type Operation } from './operations.ts'
import { describeErrorReplies, errorExamples, headers } from './replies.ts'
import { createSchemaConverter } from './schemas.ts'
import { describeSecuritySchemes } from './security.ts'
import { tags } from './tags.ts'
import { describeUnversioned } from './unversioned.ts'
import { describeWebhooks } from './webhooks.ts'

export interface OpenapiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string; readonly description: string }
  readonly servers: readonly { readonly url: string }[]
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly webhooks: Readonly<Record<string, object>>
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

const description = `The API of a managed SRT/SRTLA relay service: accounts, relays, billing and operators.

- **Format:** JSON in and out, \`snake_case\`, times as RFC 3339 in UTC, ids as UUIDs, durations as whole seconds. Unknown members of a request are ignored.
- **Errors** are \`{"error":{"code","message"}}\`. Programs decide by the code; messages are for people and may change.
- **Retries:** after 429 and 503 wait for the seconds of \`Retry-After\`. An operation whose description says that it is safe to repeat may be sent again after any failure.
- **Pages:** lists return \`next_cursor\`; send it as \`cursor\` for the next page, until it is null.`

const ErrorBody = z
  .object({
    error: z.object({
      code: z.enum(Object.keys(refusals) as [RefusalCode]),
      message: z.string().describe('For people. It may change at any time.'),
    }),
  })
  .describe('The body of every error.')

const FlatErrorBody = z
  .object({ error: z.string(), error_description: z.string().describe('For people. It may change at any time.') })
  .describe('The body of errors as OAuth has them.')

/** @param apiUrl the base URL of the described server. */
export function openapiDocument(routes: readonly Route[], apiUrl: string): OpenapiDocument {
  const converter = createSchemaConverter()
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = basePath + route.path
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeOperation(route, converter) }
  }
  Object.assign(paths, describeUnversioned(converter))
  const webhooks = describeWebhooks(converter)
  const components = {
    Error: converter.convert(ErrorBody),
    FlatError: converter.convert(FlatErrorBody),
    ...converter.components,
  }
  return {
    openapi: '3.1.0',
    info: { title: 'Relay control plane', version: '1', description },
    servers: [{ url: apiUrl }],
    tags,
    paths,
    webhooks,
    components: {
      securitySchemes: describeSecuritySchemes(apiUrl),
      schemas: Object.fromEntries(Object.entries(components).toSorted(([a], [b]) => a.localeCompare(b, 'en'))),
      responses: describeErrorReplies(routes),
      headers,
      examples: errorExamples,
    },
  }
}
