/** The OpenAPI document: equal to the routes, valid, and complete. */
import { readFile } from 'node:fs/promises'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { basePath } from '../../../api/http/app.ts'
import { refusals } from '../../../api/http/refusals.ts'
import { type OpenapiDocument, openapiDocument } from '../../../api/openapi/document.ts'
import { unversionedOperations } from '../../../api/openapi/unversioned.ts'
import { routes } from '../../../api/routes.ts'
import { notificationKinds } from '../../../domain/notifications/kinds.ts'

const committed = await readFile(new URL('../../../docs/openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(committed) as OpenapiDocument & { components: { securitySchemes: object } }
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, path, operation })),
)

/** Yields every object within a value, including the value itself, with its path. */
function* objectsIn(value: unknown, path = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [path, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${path}/${name}`)
}

const resolve = (pointer: string): unknown =>
  pointer
    .slice(2)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((value: unknown, part) => (value as Record<string, unknown> | undefined)?.[part], document)

test('docs/openapi.json is generated from the routes', () => {
  const generated = `${JSON.stringify(openapiDocument(routes, 'http://localhost:8080'), null, 2)}\n`
  expect(generated, 'docs/openapi.json is out of date: npm run generate').toBe(committed)
})

describe('docs/openapi.json', () => {
  test('is OpenAPI 3.1 with a title, a version and a server', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/)
    expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) })
    expect(document.servers.map((server) => URL.canParse(server.url))).not.toContain(false)
  })

  test('is valid by the schema of OpenAPI', async () => {
    expect(await new Validator().validate(JSON.parse(committed))).toEqual({ valid: true })
  })

  test('documents the limit of each limited operation, and the headers of refusals for now', () => {
    for (const route of routes.filter(({ limit }) => limit !== undefined)) {
      const operation = document.paths[basePath + route.path]?.[route.method.toLowerCase()]
      expect(operation?.description, route.path).toContain(`\`${route.limit}\``)
      expect(operation?.responses, route.path).toHaveProperty('429')
    }
    const { responses } = document.components as unknown as { responses: Record<string, { headers: object }> }
    expect(Object.keys(responses.rate_limited?.headers ?? {})).toEqual(
      expect.arrayContaining(['Retry-After', 'RateLimit', 'RateLimit-Policy']),
    )
    expect(Object.keys(responses.temporarily_unavailable?.headers ?? {})).toContain('Retry-After')
  })

  test('names the signature headers of each billing provider', () => {
    const webhook = document.paths[`${basePath}/billing/webhook`]?.post
    const names = ((webhook?.parameters ?? []) as { name: string; in: string }[]).map(({ name }) => name.toLowerCase())
    expect(names).toEqual(
      expect.arrayContaining([
        'webhook-id',
        'webhook-timestamp',
        'webhook-signature',
        'stripe-signature',
        'x-signature',
      ]),
    )
  })

  test('describes the webhook of each kind of notification with the headers of its signature', () => {
    expect(Object.keys(document.webhooks).toSorted()).toEqual([...notificationKinds, 'test'].toSorted())
    for (const [kind, webhook] of Object.entries(document.webhooks)) {
      const { parameters } = (webhook as { post: { parameters: { name: string; required: boolean }[] } }).post
      expect(parameters, kind).toMatchObject(
        ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => ({ name, required: true })),
      )
    }
  })

  test('names the header of a start that was repeated', () => {
    const start = document.paths[`${basePath}/relay/start`]?.post as unknown as Record<string, never>
    expect(start).toHaveProperty('responses.200.headers.Idempotent-Replayed')
  })

  test('puts each operation into a described group', () => {
    const tags = new Set(document.tags.map(({ name }) => name))
    expect(document.tags.filter(({ description }) => description === '')).toEqual([])
    const used = operations.flatMap(({ operation }) => operation.tags)
    expect([...new Set(used)].toSorted()).toEqual([...tags].toSorted())
  })

  test('shares the schemas of objects that several operations return', () => {
    for (const name of ['Error', 'User', 'Entitlement', 'Usage', 'RelaySession', 'TokenSet', 'Subscription'])
      expect(document.components.schemas, name).toHaveProperty(name)
  })

  test('has every route and nothing else', () => {
    const declared = routes.map((route) => `${route.method} ${basePath}${route.path}`)
    const unversioned = unversionedOperations.map(({ path }) => `GET ${path}`)
    expect(operations.map(({ title }) => title).sort()).toEqual([...declared, ...unversioned].sort())
  })

  test('has no dangling references', () => {
    const dangling = [...objectsIn(document)].flatMap(([path, { $ref }]) =>
      typeof $ref === 'string' && !($ref.startsWith('#/') && resolve($ref) !== undefined) ? [`${path}: ${$ref}`] : [],
    )
    expect(dangling).toEqual([])
  })

  test('declares each path parameter once, as required', () => {
    for (const { title, path, operation } of operations) {
      const inPath = (operation.parameters as { name: string; in: string; required: boolean }[]).filter(
        (parameter) => parameter.in === 'path',
      )
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true }))
      expect(inPath, title).toMatchObject(wanted)
      expect(inPath, title).toHaveLength(wanted.length)
    }
  })

  test('lists the success statuses of each operation, and the error codes of each failure', () => {
    for (const { title, path, operation } of operations) {
      const statuses = Object.keys(operation.responses)
      expect(operation.summary, title).not.toBe('')
      // An operation that is not available yet has 501 only.
      expect(
        statuses.filter((status) => /^(101|2\d\d|501)$/.test(status)),
        title,
      ).not.toEqual([])
      for (const [status, response] of Object.entries(operation.responses)) {
        if (/^[123]/.test(status) || !path.startsWith(basePath)) continue
        const { description } = ('$ref' in response ? resolve(response.$ref) : response) as { description: string }
        const codes = Object.entries(refusals).flatMap(([code, [refused]]) =>
          refused === Number(status) ? [code] : [],
        )
        expect(codes, `${title} ${status}`).toEqual(expect.arrayContaining(description.split(', ')))
      }
    }
  })

  test('uses only security schemes that it defines', () => {
    const known = Object.keys(document.components.securitySchemes)
    const used = operations.flatMap(
      ({ operation }) => operation.security?.flatMap((requirement) => Object.keys(requirement)) ?? [],
    )
    expect(known).toEqual(expect.arrayContaining([...new Set(used)]))
  })

  test('has no OpenAPI 3.0 keywords in its schemas', () => {
    // JSON Schema 2020-12 expresses null and exclusive limits differently from OpenAPI 3.0.
    const old = [...objectsIn(document)].flatMap(([path, value]) =>
      'nullable' in value && !path.endsWith('/properties')
        ? [path]
        : typeof value.exclusiveMinimum === 'boolean'
          ? [path]
          : [],
    )
    expect(old).toEqual([])
  })
})
