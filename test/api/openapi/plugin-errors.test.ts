/** The error codes of docs/plugin.md, compared with those of the document. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { type RefusalCode, refusals } from '../../../api/http/refusals.ts'

const read = (path: string) => readFile(new URL(`../../../docs/${path}`, import.meta.url), 'utf8')

interface ErrorSchema {
  readonly properties: { readonly error: { readonly properties: { readonly code: { readonly enum: string[] } } } }
}

test('docs/plugin.md says for each error code of the API, and for no other, what a plugin does', async () => {
  const document = JSON.parse(await read('openapi.json')) as { components: { schemas: { Error: ErrorSchema } } }
  const [, table = ''] = /\n## Errors\n(.*?)\n## /s.exec(await read('plugin.md')) ?? []
  const rows = [...table.matchAll(/^\| `(\w+)` \| (\d+) \| (\S.+) \|$/gm)]
  const documented = document.components.schemas.Error.properties.error.properties.code.enum
  expect(rows.map(([, code]) => code).toSorted()).toEqual(documented.toSorted())
  const statuses = rows.map(([, code, status]) => [code, Number(status)])
  expect(statuses).toEqual(statuses.map(([code]) => [code, refusals[code as RefusalCode]?.[0]]))
})
