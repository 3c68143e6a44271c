import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { basePath } from '../../../api/http/app.ts'
import { type OpenapiDocument, openapiDocument } from '../../../api/http/openapi.ts'
import { refusals } from '../../../api/http/refusals.ts'
import { routes } from '../../../api/routes.ts'

const committed = await readFile(new URL('../../../docs/openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(committed) as OpenapiDocument & { components: { securitySchemes: object } }
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, path, operation })),
)

/** Every object within a value, the value included, with the way to it. */
function* objectsIn(value: unknown, way = '#'): Generator<[string, Record<string, unknown>]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [way, value as Record<string, unknown>]
  for (const [name, inner] of Object.entries(value)) yield* objectsIn(inner, `${way}/${name}`)
}

const resolve = (pointer: string): unknown =>
  pointer
    .slice(2)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((value: unknown, part) => (value as Record<string, unknown> | undefined)?.[part], document)

test('the committed description is what the routes make', () => {
  const made = `${JSON.stringify(openapiDocument(routes, 'http://localhost:8080'), null, 2)}\n`
  expect(made, 'docs/openapi.json is out of date: npm run generate').toBe(committed)
})

describe('the committed description', () => {
  test('is OpenAPI 3.1 with a title, a version and a server', () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/)
    expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) })
    expect(document.servers.map((server) => URL.canParse(server.url))).not.toContain(false)
  })

  test('holds every route and nothing else', () => {
    const declared = routes.map((route) => `${route.method} ${basePath}${route.path}`)
    expect(operations.map((one) => one.title).sort()).toEqual(declared.sort())
  })

  test('points only to what it holds', () => {
    const dangling = [...objectsIn(document)].flatMap(([way, { $ref }]) =>
      typeof $ref === 'string' && !($ref.startsWith('#/') && resolve($ref) !== undefined) ? [`${way}: ${$ref}`] : [],
    )
    expect(dangling).toEqual([])
  })

  test('names each parameter of a path once, and requires it', () => {
    for (const { title, path, operation } of operations) {
      const inPath = (operation.parameters as { name: string; in: string; required: boolean }[]).filter(
        (one) => one.in === 'path',
      )
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({ name, in: 'path', required: true }))
      expect(inPath, title).toMatchObject(wanted)
      expect(inPath, title).toHaveLength(wanted.length)
    }
  })

  test('tells of each operation how it succeeds, and of each failure which codes it has', () => {
    for (const { title, operation } of operations) {
      const statuses = Object.keys(operation.responses)
      expect(operation.summary, title).not.toBe('')
      // What is not available yet has no success to tell of.
      expect(
        statuses.filter((status) => /^(2\d\d|501)$/.test(status)),
        title,
      ).not.toEqual([])
      for (const [status, { description }] of Object.entries(operation.responses)) {
        if (status.startsWith('2')) continue
        const codes = Object.entries(refusals).flatMap(([code, refusal]) =>
          refusal.status === Number(status) ? [code] : [],
        )
        expect(codes, `${title} ${status}`).toEqual(expect.arrayContaining(description.split(', ')))
      }
    }
  })

  test('asks only for credentials that it describes', () => {
    const known = Object.keys(document.components.securitySchemes)
    const asked = operations.flatMap(
      ({ operation }) => (operation as { security?: object[] }).security?.flatMap((one) => Object.keys(one)) ?? [],
    )
    expect(known).toEqual(expect.arrayContaining([...new Set(asked)]))
  })

  test('has no key of an older dialect in its schemas', () => {
    // JSON Schema 2020-12 says null and exclusive limits in other words than OpenAPI 3.0 did.
    const old = [...objectsIn(document)].flatMap(([way, value]) =>
      'nullable' in value && !way.endsWith('/properties')
        ? [way]
        : typeof value.exclusiveMinimum === 'boolean'
          ? [way]
          : [],
    )
    expect(old).toEqual([])
  })
})
