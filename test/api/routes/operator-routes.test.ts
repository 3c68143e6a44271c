/** Every operation for operators in the OpenAPI document: a new one is tested here without a change. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../support/api.ts'
import { highLimits } from '../../support/environment.ts'
import { operatorPassword } from '../../support/relays.ts'

interface Parameter {
  readonly name: string
  readonly in: string
  readonly schema: { readonly maxLength?: number; readonly enum?: readonly string[] }
}
interface Operation {
  readonly parameters?: readonly Parameter[]
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly responses: Readonly<
    Record<string, { readonly content?: Record<string, { readonly schema: { readonly properties?: object } }> }>
  >
}

const documentPath = new URL('../../../docs/openapi.json', import.meta.url)
const { paths } = JSON.parse(await readFile(documentPath, 'utf8')) as {
  paths: Record<string, Record<string, Operation>>
}
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)
const forOperators = operations.filter(({ operation }) =>
  operation.security?.some((requirement) => 'operator' in requirement),
)

let [api, apiWithoutOperators]: TestApi[] = []
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword, SVC_RATE_LIMITS: highLimits({}) })
  apiWithoutOperators = await startApi()
})

/** The status of a request with an empty object as the body. */
async function statusOf(at: TestApi | undefined, method: string, path: string, authorization?: string) {
  const response = await fetch(at?.url + path.replaceAll(/\{\w+\}/g, randomUUID()), {
    method,
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      ...(method === 'GET' ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(method === 'GET' ? {} : { body: '{}' }),
  })
  await response.arrayBuffer()
  return response.status
}

const basic = (password: string) => `Basic ${Buffer.from(`operator:${password}`).toString('base64')}`

test('the routes below /admin are those of operators, and no others', () => {
  const below = operations.filter(({ path }) => path.startsWith('/api/v1/admin/'))
  expect(below.length).toBeGreaterThan(25)
  expect(forOperators).toEqual(below)
})

test.each(forOperators)(
  '$method $path requires the password or the token of an operator session',
  async ({ method, path }) => {
    const { bearer } = (await api?.given.user()) ?? {}
    const wrong = [undefined, basic('wrong'), `Bearer ${'a'.repeat(43)}`, `Bearer ${bearer}`]
    for (const authorization of wrong) expect(await statusOf(api, method, path, authorization)).toBe(401)
    expect(await statusOf(api, method, path, basic(operatorPassword))).not.toBe(401)
  },
)

test.each(forOperators)('$method $path does not exist without a configured password', async ({ method, path }) => {
  for (const authorization of [undefined, basic(''), basic(operatorPassword), `Bearer ${'a'.repeat(43)}`])
    expect(await statusOf(apiWithoutOperators, method, path, authorization)).toBe(404)
})

/** The incidents of the public page, which are limited, and one row for each configured region. */
const withoutPages = ['/api/v1/admin/incidents', '/api/v1/admin/regions']
/** At most 100 rows of one account. */
const withOnePage = ['/api/v1/admin/users/{id}/subscriptions']

test('every list has pages with a cursor', () => {
  const lists = forOperators.filter(({ method, operation }) => method === 'GET' && listsOf(operation).length > 0)
  const hasCursor = ({ operation }: (typeof lists)[number]) =>
    operation.parameters?.some((parameter) => parameter.in === 'query' && parameter.name === 'cursor') === true
  expect(
    lists
      .filter((list) => !hasCursor(list))
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual([...withOnePage, ...withoutPages].toSorted())
  for (const { operation, path } of lists)
    expect([path, 'next_cursor' in propertiesOf(operation)]).toEqual([path, !withoutPages.includes(path)])
  expect(lists.length).toBeGreaterThan(7)
})

const propertiesOf = (operation: Operation): object =>
  operation.responses['200']?.content?.['application/json']?.schema.properties ?? {}

/** The properties of a reply that consists of one list, and its cursor. */
const listsOf = (operation: Operation): string[] => {
  const entries = Object.entries(propertiesOf(operation)) as [string, { type?: string }][]
  const names = entries.filter(([name]) => name !== 'next_cursor')
  return names.length === 1 && names[0]?.[1].type === 'array' ? [names[0][0]] : []
}
