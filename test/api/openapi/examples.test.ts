/** The examples and texts of the API reference, compared with the schemas of the routes. */
import { describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { basePath } from '../../../api/http/app.ts'
import type { Examples } from '../../../api/http/operation-text.ts'
import { openapiDocument } from '../../../api/openapi/document.ts'
import { unversionedOperations } from '../../../api/openapi/unversioned.ts'
import { webhookBody } from '../../../api/openapi/webhooks.ts'
import { routes } from '../../../api/routes.ts'
import type { Notification } from '../../../domain/notifications/kinds.ts'

const document = openapiDocument(routes, 'http://localhost:8080')

interface Described {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly examples?: Examples }>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { examples: Examples }>> }>>
}

const described = (method: string, path: string) =>
  document.paths[path]?.[method.toLowerCase()] as unknown as Described | undefined

/**
 * What a schema says about examples: the problem of each one that it does not accept, or accepts only without some
 * members.
 */
const problemsOf = (schema: z.ZodType, examples: Examples = {}, isStrict = false) =>
  Object.entries(examples).flatMap(([name, { value }]) => {
    const result = schema.safeParse(value)
    if (!result.success) return [`${name}: ${result.error.message}`]
    if (isStrict && JSON.stringify(sorted(result.data)) !== JSON.stringify(sorted(value)))
      return [`${name}: has members that the schema does not have`]
    return []
  })

const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : typeof value === 'object' && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .map(([key, inner]) => [key, sorted(inner)] as const)
            .toSorted(([a], [b]) => (a < b ? -1 : 1)),
        )
      : value

const titled = routes.map((route) => ({
  title: `${route.method} ${route.path}`,
  route,
  operation: described(route.method, basePath + route.path),
}))

describe('the examples', () => {
  test.each(titled.filter(({ route }) => route.body))('of the request of $title are valid', ({ route, operation }) => {
    const examples = operation?.requestBody?.content['application/json']?.examples
    expect(route.body && problemsOf(route.body, examples)).toEqual([])
  })

  test.each(titled)('of the replies of $title are valid', ({ route, operation }) => {
    for (const [status, schema] of Object.entries(route.answers)) {
      const examples = operation?.responses[status]?.content?.['application/json']?.examples
      if (schema && typeof schema !== 'string') expect(problemsOf(schema, examples, true), status).toEqual([])
    }
  })

  test('are of requests and replies that their operation has', () => {
    const stray = titled.filter(({ route: { body, bytesMax, answers, examples = {} } }) => {
      const hasRequest = body !== undefined || bytesMax !== undefined
      const statuses = Object.keys(examples.replies ?? {})
      return (examples.requests && !hasRequest) || statuses.some((status) => !answers[Number(status)])
    })
    expect(stray.map(({ title }) => title)).toEqual([])
  })

  test.each([
    'POST /auth/login',
    'POST /auth/refresh',
    'POST /auth/plugin/login/start',
    'POST /auth/plugin/login/poll',
    'POST /relay/start',
    'GET /relay/active',
    'POST /relay/stop',
    'POST /relay/health',
    'POST /billing/checkout',
    'POST /billing/webhook',
  ])('show the request and the reply of %s', (title) => {
    const { route, operation } = titled.find((candidate) => candidate.title === title) ?? {}
    const bodies = [
      operation?.requestBody,
      ...Object.values(operation?.responses ?? {}).filter(({ content }) => content),
    ]
    for (const body of route?.method === 'GET' ? bodies.slice(1) : bodies)
      expect(Object.keys(body?.content?.['application/json']?.examples ?? {})).not.toEqual([])
  })

  test.each(Object.keys(document.webhooks) as Notification['kind'][])('of the webhook %s are valid', (kind) => {
    const { post } = document.webhooks[kind] as { post: Described }
    const examples = post.requestBody?.content['application/json']?.examples ?? {}
    expect(Object.keys(examples)).not.toEqual([])
    expect(problemsOf(webhookBody(kind), examples, true)).toEqual([])
  })

  test.each(unversionedOperations)('of the replies of GET $path are valid', ({ path, answers }) => {
    for (const [status, schema] of Object.entries(answers)) {
      const [media] = Object.values(described('GET', path)?.responses[status]?.content ?? {})
      expect(Object.keys(media?.examples ?? {}), status).not.toEqual([])
      if (typeof schema !== 'string') expect(problemsOf(schema, media?.examples, true), status).toEqual([])
    }
  })
})

describe('the texts', () => {
  test('describe every operation', () => {
    expect(titled.filter(({ route }) => route.description === '')).toEqual([])
  })

  test('give each operation an id of its own', () => {
    const ids = Object.values(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    )
    expect(ids.filter((id) => !/^[a-z]+([A-Z][a-z]+)*$/.test(id))).toEqual([])
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([])
  })

  test('have short titles without a period', () => {
    const summaries = routes.map(({ summary }) => summary)
    expect(summaries.filter((summary) => summary.length > 80 || summary.endsWith('.'))).toEqual([])
  })
})
